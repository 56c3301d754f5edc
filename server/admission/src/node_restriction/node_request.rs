//! A request of a kubelet, as all of this plugin's rules see it.

use portico_machinery::{GroupResource, Object, Status};
use portico_registry::{Attributes, Objects, Operation, Result};

/// See the module.
pub(super) struct NodeRequest<'a> {
    pub(super) objects: &'a Objects,
    pub(super) attributes: Attributes<'a>,
    /// What is written; nothing for a delete.
    pub(super) new: Option<&'a Object>,
    /// What is there; nothing for a create.
    pub(super) old: Option<&'a Object>,
}

impl NodeRequest<'_> {
    /// The name of the request, or that of what is created.
    pub(super) fn name(&self) -> &str {
        match (self.attributes.name, self.new) {
            ("", Some(new)) => new.name(),
            (name, _) => name,
        }
    }

    /// 403 in the words of this plugin.
    pub(super) fn forbidden(&self, why: &str) -> Box<Status> {
        let generated = self.new.map_or("", Object::generate_name);
        let name = [self.name(), generated].into_iter().find(|name| !name.is_empty());
        Box::new(Status::forbidden(&self.attributes.served.resource, name.unwrap_or("Unknown"), why))
    }

    /// 403 for an operation that is none of a kubelet's.
    pub(super) fn unexpected(&self) -> Box<Status> {
        self.forbidden(&format!("unexpected operation {:?}", self.attributes.operation_name()))
    }

    /// Whether it is this operation.
    pub(super) fn is(&self, operation: Operation) -> bool {
        self.attributes.operation == operation
    }

    /// Another object of the core group.
    ///
    /// # Errors
    /// 404 in the words of upstream's listers, which name a kind where others name a resource.
    pub(super) async fn core_object(&self, kind: &str, namespace: &str, name: &str) -> Result<Object> {
        let found = self.objects.object_of("", &format!("{kind}s"), namespace, name).await?;
        found.ok_or_else(|| Box::new(Status::not_found(&GroupResource::new("", kind), name)))
    }
}
