//! In whose name controllers of kube-controller-manager write.

use portico_registry::{Context, ObjectRef};

/// One of upstream's controller service accounts.
pub(crate) fn account(name: &str) -> Context {
    Context::system(&format!("system:serviceaccount:kube-system:{name}"))
}

/// What a queue of namespaced objects holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamespacedName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl NamespacedName {
    /// Both parts.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The object of this name among those of a resource.
    #[must_use]
    pub(crate) fn of(&self, group: &str, resource: &str) -> ObjectRef {
        ObjectRef {
            resource: portico_machinery::GroupResource::new(group, resource),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}
