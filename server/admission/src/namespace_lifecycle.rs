//! NamespaceLifecycle: protects the system namespaces from deletion. The registry checks in the transaction of each write that
//! the namespace of a new object exists.
//!
//! Upstream rules: apiserver/pkg/admission/plugin/namespace/lifecycle.

use portico_machinery::Status;
use portico_registry::{Objects, Operation};

use crate::plugin::{DeleteRequest, MutationFuture, Plugin, ResourcePattern};

/// Namespaces that cannot be deleted.
const PROTECTED: [&str; 3] = ["default", "kube-system", "kube-public"];

/// NamespaceLifecycle plugin.
pub(crate) struct NamespaceLifecycle;

impl Plugin for NamespaceLifecycle {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("", "namespaces", "")]
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Delete]
    }

    fn admit_delete<'a>(&'a self, _objects: &'a Objects, request: DeleteRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move {
            let name = request.attributes.name;
            if !PROTECTED.contains(&name) {
                return Ok(());
            }
            let resource = &request.attributes.served_resource.resource;
            Err(Box::new(Status::forbidden(resource, name, "this namespace may not be deleted")))
        })
    }
}
