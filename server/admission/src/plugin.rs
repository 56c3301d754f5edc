//! The trait of admission plugins, and the requests that plugins receive.

use std::future::Future;
use std::pin::Pin;

use portico_machinery::{Object, Status};
use portico_registry::{Attributes, Objects, Operation, Result};

/// Write that a plugin may change. The object is complete, but not yet prepared or validated.
pub(crate) struct MutationRequest<'a> {
    /// Attributes of the request.
    pub(crate) attributes: Attributes<'a>,
    /// The written object.
    pub(crate) new: &'a mut Object,
    /// The stored object; `None` for a create.
    pub(crate) old: Option<&'a Object>,
}

impl MutationRequest<'_> {
    /// Returns 403 with the message of a plugin.
    pub(crate) fn forbidden(&self, message: &str) -> Box<Status> {
        let name = [self.new.name(), self.new.generate_name()].into_iter().find(|name| !name.is_empty());
        Box::new(Status::forbidden(
            &self.attributes.served_resource.resource,
            name.unwrap_or("Unknown"),
            message,
        ))
    }
}

/// Write whose object is valid.
#[derive(Clone, Copy)]
pub(crate) struct ValidationRequest<'a> {
    /// Attributes of the request.
    pub(crate) attributes: Attributes<'a>,
    /// The written object.
    pub(crate) new: &'a Object,
    /// The stored object; `None` for a create.
    pub(crate) old: Option<&'a Object>,
}

impl ValidationRequest<'_> {
    /// Returns 403 with the message of a plugin.
    pub(crate) fn forbidden(&self, message: &str) -> Box<Status> {
        Box::new(Status::forbidden(&self.attributes.served_resource.resource, self.new.name(), message))
    }
}

/// Delete of an object or of a collection.
#[derive(Clone, Copy)]
pub(crate) struct DeleteRequest<'a> {
    /// Attributes of the request.
    pub(crate) attributes: Attributes<'a>,
    /// The deleted object; `None` for a collection.
    pub(crate) old: Option<&'a Object>,
}

impl DeleteRequest<'_> {
    /// Returns 403 with the message of a plugin.
    pub(crate) fn forbidden(&self, message: &str) -> Box<Status> {
        let mut names = [Some(self.attributes.name), self.old.map(Object::name)].into_iter().flatten();
        let name = names.find(|name| !name.is_empty());
        Box::new(Status::forbidden(
            &self.attributes.served_resource.resource,
            name.unwrap_or("Unknown"),
            message,
        ))
    }
}

/// Future of a mutating plugin.
pub(crate) type MutationFuture<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// Future of a validating plugin. Its output is the warnings for the caller.
pub(crate) type ValidationFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<String>>> + Send + 'a>>;

/// Group, resource, and subresource (or the empty string) that a plugin handles; each may be [`ANY`].
pub(crate) type ResourcePattern = (&'static str, &'static str, &'static str);

/// Pattern that matches every group, resource or subresource, including no subresource.
pub(crate) const ANY: &str = "*";

/// Pattern for pods without subresources.
pub(crate) const PODS: &[ResourcePattern] = &[("", "pods", "")];

/// Admission plugin: changes or refuses requests for some resources. A plugin may have configuration and state.
pub(crate) trait Plugin: Send + Sync {
    /// Returns the resources that the plugin handles.
    fn targets(&self) -> &'static [ResourcePattern];

    /// Returns the operations that the plugin handles (upstream's `Handles`).
    fn operations(&self) -> &'static [Operation] {
        &[Operation::Create, Operation::Update]
    }

    /// Changes a write before it is prepared and validated, or refuses it. The object of a connect request is its options.
    fn mutate<'a>(&'a self, _objects: &'a Objects, _request: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async { Ok(()) })
    }

    /// Refuses a valid write, or returns warnings.
    fn validate<'a>(
        &'a self,
        _objects: &'a Objects,
        _request: ValidationRequest<'a>,
    ) -> ValidationFuture<'a> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Refuses a delete during mutating admission.
    fn admit_delete<'a>(&'a self, _objects: &'a Objects, _request: DeleteRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async { Ok(()) })
    }

    /// Refuses a delete during validating admission, or returns warnings.
    fn validate_delete<'a>(
        &'a self,
        _objects: &'a Objects,
        _request: DeleteRequest<'a>,
    ) -> ValidationFuture<'a> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
