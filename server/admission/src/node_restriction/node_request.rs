//! Request of a kubelet, as the rules of NodeRestriction receive it.

use portico_machinery::{GroupResource, Object, Status};
use portico_registry::{Attributes, Objects, Operation, Result};

/// Request of a kubelet.
pub(super) struct NodeRequest<'a> {
    pub(super) objects: &'a Objects,
    pub(super) attributes: Attributes<'a>,
    /// The written object; `None` for a delete.
    pub(super) new: Option<&'a Object>,
    /// The stored object; `None` for a create.
    pub(super) old: Option<&'a Object>,
}

impl NodeRequest<'_> {
    /// Returns the name in the request, or the name of the created object.
    pub(super) fn name(&self) -> &str {
        match (self.attributes.name, self.new) {
            ("", Some(new)) => new.name(),
            (name, _) => name,
        }
    }

    /// Returns 403 with the message of this plugin.
    pub(super) fn forbidden(&self, message: &str) -> Box<Status> {
        let generated = self.new.map_or("", Object::generate_name);
        let name = [self.name(), generated].into_iter().find(|name| !name.is_empty());
        Box::new(Status::forbidden(
            &self.attributes.served_resource.resource,
            name.unwrap_or("Unknown"),
            message,
        ))
    }

    /// Returns 403 for an operation that kubelets do not use.
    pub(super) fn unexpected(&self) -> Box<Status> {
        self.forbidden(&format!("unexpected operation {:?}", self.attributes.operation_name()))
    }

    /// True if the request has this operation.
    pub(super) fn has_operation(&self, operation: Operation) -> bool {
        self.attributes.operation == operation
    }

    /// Reads another object of the core group.
    ///
    /// # Errors
    /// 404 with the message of upstream's listers, which name the kind in place of the resource.
    pub(super) async fn core_object(&self, kind: &str, namespace: &str, name: &str) -> Result<Object> {
        let found = self.objects.object_of("", &format!("{kind}s"), namespace, name).await?;
        found.ok_or_else(|| Box::new(Status::not_found(&GroupResource::new("", kind), name)))
    }
}
