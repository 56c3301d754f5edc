//! rbac.authorization.k8s.io: roles say what may be done, bindings say by whom (access kinds 1).

mod binding;
mod role;

pub(crate) use binding::Binding;
pub(crate) use role::Role;
