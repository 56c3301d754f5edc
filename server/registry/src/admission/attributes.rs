//! What a write is, for whoever is asked about it.

use crate::options::{CreateOptions, DeleteOptions, PatchOptions, UpdateOptions};
use crate::served::ServedResource;
use crate::typed::{Context, Part, Place};

/// What is done (upstream's `admission.Operation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// An object is made, or an action is asked for.
    Create,
    /// An object or a subresource is replaced, patched or applied.
    Update,
    /// An object or a collection goes.
    Delete,
    /// A connection to what runs elsewhere is asked for.
    Connect,
}

impl Operation {
    /// Its name, as rules of webhooks and policies say it.
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

/// The options of a request.
#[derive(Clone, Copy, Debug)]
pub enum Options<'a> {
    /// Of a create.
    Create(&'a CreateOptions),
    /// Of an update.
    Update(&'a UpdateOptions),
    /// Of a patch or an apply.
    Patch(&'a PatchOptions),
    /// Of a delete or a delete of a collection.
    Delete(&'a DeleteOptions),
    /// Of a connection, whose options are the object that it is asked about with.
    Connect,
}

/// What a write is (upstream's `admission.Attributes`).
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    /// Who writes.
    pub context: &'a Context,
    /// What is done.
    pub operation: Operation,
    /// The options that came with it.
    pub options: Options<'a>,
    /// The resource, in the version of the request.
    pub served: &'a ServedResource,
    /// The object or a subresource.
    pub part: Part<'a>,
    /// The namespace of the request; empty for what is in none.
    pub namespace: &'a str,
    /// The name of the request; empty for a create and for a collection.
    pub name: &'a str,
}

impl<'a> Attributes<'a> {
    /// A write of what is in this place.
    pub(crate) fn new(
        context: &'a Context,
        served: &'a ServedResource,
        place: Place<'a>,
        options: Options<'a>,
    ) -> Self {
        let operation = match options {
            Options::Create(_) => Operation::Create,
            Options::Update(_) | Options::Patch(_) => Operation::Update,
            Options::Delete(_) => Operation::Delete,
            Options::Connect => Operation::Connect,
        };
        let Place { part, namespace, name } = place;
        Self { context, operation, options, served, part, namespace, name }
    }

    /// The name of the operation, as rules of webhooks and policies say it.
    #[must_use]
    pub fn operation_name(&self) -> &'static str {
        self.operation.name()
    }

    /// Whether nothing is written in the end.
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

    /// The verb that authorizers know: `create`, `update`, `patch`, `delete` or `connect`.
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

    /// The name of the subresource; empty for the object itself.
    #[must_use]
    pub fn subresource(&self) -> &'a str {
        match self.part {
            Part::Main => "",
            Part::Subresource(name) => name,
        }
    }
}
