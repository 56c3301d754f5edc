//! rbac.authorization.k8s.io: roles say what may be done, bindings say by whom (access kinds 1).

mod binding;
mod role;

pub(super) use binding::Binding;
pub(super) use role::Role;
