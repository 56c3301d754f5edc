//! rbac.authorization.k8s.io: roles, which allow verbs on resources or paths, and their bindings to subjects.

mod binding;
mod role;

pub(crate) use binding::Binding;
pub(crate) use role::Role;
