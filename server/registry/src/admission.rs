//! Admission: who else is asked about a write (upstream's `admission.Interface`).
//!
//! The registry knows the questions, not who answers: one [`Admission`] is given to it. Every write that passes the verbs
//! carries the same [`Attributes`].

use std::sync::Arc;

use portico_machinery::Object;
use portico_store::{Operation as StoreOperation, Record, Txn, TxnError};

use crate::hooks::Pending;
use crate::objects::Objects;
use crate::options::{CreateOptions, DeleteOptions, PatchOptions, UpdateOptions};
use crate::served::ServedResource;
use crate::typed::{Context, Part, Place};
use crate::write::Write;

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
    /// Of a connection, whose options are its own.
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

/// How a commit that was counted has ended; nothing when there was nothing to count, and nothing was written.
pub type Charged = Option<Result<Arc<Record>, TxnError>>;

/// Who else is asked about a write. What is not concerned returns nothing at once.
pub trait Admission: Send + Sync {
    /// Changes what is written before it is prepared and validated, or refuses it. A delete and a connection have no new
    /// object.
    fn mutate<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a mut Object>,
        old: Option<&'a Object>,
    ) -> Option<Pending<'a, ()>>;

    /// Accepts or refuses what is valid; gives warnings for the caller. A delete has only an old object, a connection
    /// none.
    fn validate<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a Object>,
        old: Option<&'a Object>,
    ) -> Option<Pending<'a, Vec<String>>>;

    /// Refuses a write that does not fit into the quotas, for a dry run.
    fn check_quota<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        write: Write<'a>,
    ) -> Option<Pending<'a, ()>>;

    /// Commits a valid write, and the checks of what it relies on, together with what counts it in quotas.
    fn commit<'a>(
        &'a self,
        objects: &'a Objects,
        attributes: Attributes<'a>,
        write: Write<'a>,
        txn: &'a Txn,
        checks: &'a [StoreOperation],
    ) -> Option<Pending<'a, Charged>>;
}

/// Admission that accepts everything and counts nothing.
pub struct AdmitAll;

impl Admission for AdmitAll {
    fn mutate<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _new: Option<&'a mut Object>,
        _old: Option<&'a Object>,
    ) -> Option<Pending<'a, ()>> {
        None
    }

    fn validate<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _new: Option<&'a Object>,
        _old: Option<&'a Object>,
    ) -> Option<Pending<'a, Vec<String>>> {
        None
    }

    fn check_quota<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _write: Write<'a>,
    ) -> Option<Pending<'a, ()>> {
        None
    }

    fn commit<'a>(
        &'a self,
        _objects: &'a Objects,
        _attributes: Attributes<'a>,
        _write: Write<'a>,
        _txn: &'a Txn,
        _checks: &'a [StoreOperation],
    ) -> Option<Pending<'a, Charged>> {
        None
    }
}
