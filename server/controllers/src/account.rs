//! Identity and object keys of controllers that run in kube-controller-manager upstream.

use portico_registry::{Context, ObjectRef};

/// Returns the context of one of upstream's controller service accounts in `kube-system`.
pub(crate) fn service_account_context(name: &str) -> Context {
    Context::system(&format!("system:serviceaccount:kube-system:{name}"))
}

/// Key of a namespaced object in a work queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamespacedName {
    pub namespace: String,
    pub name: String,
}

impl NamespacedName {
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Returns a reference to the object with this namespace and name in a resource.
    #[must_use]
    pub(crate) fn object_ref(&self, group: &str, resource: &str) -> ObjectRef {
        ObjectRef {
            resource: portico_machinery::GroupResource::new(group, resource),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}
