//! What a plugin is, and what it is given.

use std::future::Future;
use std::pin::Pin;

use portico_machinery::{Object, Status};
use portico_registry::{Attributes, Objects, Operation, Result};

/// A write that a plugin may change: complete, not prepared, not validated.
pub(crate) struct MutationRequest<'a> {
    /// What the write is.
    pub(crate) attributes: Attributes<'a>,
    /// What is written.
    pub(crate) new: &'a mut Object,
    /// What is there; nothing for a create.
    pub(crate) old: Option<&'a Object>,
}

impl MutationRequest<'_> {
    /// 403 in the words of a plugin.
    pub(crate) fn forbidden(&self, why: &str) -> Box<Status> {
        let name = [self.new.name(), self.new.generate_name()].into_iter().find(|name| !name.is_empty());
        Box::new(Status::forbidden(&self.attributes.served.resource, name.unwrap_or("Unknown"), why))
    }
}

/// A valid write.
#[derive(Clone, Copy)]
pub(crate) struct ValidationRequest<'a> {
    /// What the write is.
    pub(crate) attributes: Attributes<'a>,
    /// What is written.
    pub(crate) new: &'a Object,
    /// What is there; nothing for a create.
    pub(crate) old: Option<&'a Object>,
}

impl ValidationRequest<'_> {
    /// 403 in the words of a plugin.
    pub(crate) fn forbidden(&self, why: &str) -> Box<Status> {
        Box::new(Status::forbidden(&self.attributes.served.resource, self.new.name(), why))
    }
}

/// A delete, of an object or of a collection.
#[derive(Clone, Copy)]
pub(crate) struct DeleteRequest<'a> {
    /// What the delete is.
    pub(crate) attributes: Attributes<'a>,
    /// What goes; nothing for a collection.
    pub(crate) old: Option<&'a Object>,
}

impl DeleteRequest<'_> {
    /// 403 in the words of a plugin.
    pub(crate) fn forbidden(&self, why: &str) -> Box<Status> {
        let mut names = [Some(self.attributes.name), self.old.map(Object::name)].into_iter().flatten();
        let name = names.find(|name| !name.is_empty());
        Box::new(Status::forbidden(&self.attributes.served.resource, name.unwrap_or("Unknown"), why))
    }
}

/// A plugin that changes, at work.
pub(crate) type Mutating<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// A plugin that validates, at work; its warnings are for the caller.
pub(crate) type Validating<'a> = Pin<Box<dyn Future<Output = Result<Vec<String>>> + Send + 'a>>;

/// What a plugin looks at: group, resource, and the subresource or nothing; each may be [`ANY`].
pub(crate) type Target = (&'static str, &'static str, &'static str);

/// Every group, resource or subresource, and none.
pub(crate) const ANY: &str = "*";

/// Pods themselves.
pub(crate) const PODS: &[Target] = &[("", "pods", "")];

/// Changes or refuses requests for some resources. It may have configuration and state of its own.
pub(crate) trait Plugin: Send + Sync {
    /// What it looks at.
    fn targets(&self) -> &'static [Target];

    /// The operations that it looks at (upstream's `Handles`).
    fn operations(&self) -> &'static [Operation] {
        &[Operation::Create, Operation::Update]
    }

    /// Changes a write before it is prepared and validated, or refuses it. What a connection writes is its options.
    fn mutate<'a>(&'a self, _objects: &'a Objects, _request: MutationRequest<'a>) -> Mutating<'a> {
        Box::pin(async { Ok(()) })
    }

    /// Refuses a write that is valid otherwise, or warns of it.
    fn validate<'a>(&'a self, _objects: &'a Objects, _request: ValidationRequest<'a>) -> Validating<'a> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Refuses a delete in the first half of admission.
    fn admit_delete<'a>(&'a self, _objects: &'a Objects, _request: DeleteRequest<'a>) -> Mutating<'a> {
        Box::pin(async { Ok(()) })
    }

    /// Refuses a delete in the second half of admission, or warns of it.
    fn validate_delete<'a>(&'a self, _objects: &'a Objects, _request: DeleteRequest<'a>) -> Validating<'a> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
