//! Attributes of a write, for admission.

use crate::options::{CreateOptions, DeleteOptions, PatchOptions, UpdateOptions};
use crate::served_resource::ServedResource;
use crate::verb_types::{Context, ObjectPart, ObjectPath};

/// Operation of a write (upstream's `admission.Operation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates an object or runs an action.
    Create,
    /// Replaces, patches or applies an object or a subresource.
    Update,
    /// Deletes an object or a collection.
    Delete,
    /// Opens a connection to a node or backend.
    Connect,
}

impl Operation {
    /// Name of the operation in rules of webhooks and policies.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// Options of a request.
#[derive(Clone, Copy, Debug)]
pub enum Options<'a> {
    /// Options of a create.
    Create(&'a CreateOptions),
    /// Options of an update.
    Update(&'a UpdateOptions),
    /// Options of a patch or an apply.
    Patch(&'a PatchOptions),
    /// Options of a delete or deletecollection.
    Delete(&'a DeleteOptions),
    /// Connection, whose options are the object that admission sees.
    Connect,
}

/// Description of a write (upstream's `admission.Attributes`).
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    /// Caller of the verb.
    pub context: &'a Context,
    /// Operation of the write.
    pub operation: Operation,
    /// Options of the request.
    pub options: Options<'a>,
    /// Resource in the version of the request.
    pub served_resource: &'a ServedResource,
    /// Part that is written: the object or a subresource.
    pub part: ObjectPart<'a>,
    /// Namespace of the request; empty for cluster-scoped resources.
    pub namespace: &'a str,
    /// Name in the request; empty for a create and for a collection.
    pub name: &'a str,
}

impl<'a> Attributes<'a> {
    /// Attributes of a write to this path.
    pub(crate) fn new(
        context: &'a Context,
        served_resource: &'a ServedResource,
        path: ObjectPath<'a>,
        options: Options<'a>,
    ) -> Self {
        let operation = match options {
            Options::Create(_) => Operation::Create,
            Options::Update(_) | Options::Patch(_) => Operation::Update,
            Options::Delete(_) => Operation::Delete,
            Options::Connect => Operation::Connect,
        };
        let ObjectPath { part, namespace, name } = path;
        Self { context, operation, options, served_resource, part, namespace, name }
    }

    /// Name of the operation in rules of webhooks and policies.
    #[must_use]
    pub fn operation_name(&self) -> &'static str {
        self.operation.name()
    }

    /// True for a dry run.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        match self.options {
            Options::Create(options) => options.dry_run,
            Options::Update(options) => options.dry_run,
            Options::Patch(options) => options.write.dry_run,
            Options::Delete(options) => options.dry_run,
            Options::Connect => false,
        }
    }

    /// Verb as authorizers know it: `create`, `update`, `patch`, `delete` or `connect`.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self.options {
            Options::Create(_) => "create",
            Options::Update(_) => "update",
            Options::Patch(_) => "patch",
            Options::Delete(_) => "delete",
            Options::Connect => "connect",
        }
    }

    /// Name of the subresource; empty for the object itself.
    #[must_use]
    pub fn subresource(&self) -> &'a str {
        match self.part {
            ObjectPart::Main => "",
            ObjectPart::Subresource(name) => name,
        }
    }
}
