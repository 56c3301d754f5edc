//! Admission: who else is asked about a write (upstream's `admission.Interface`).
//!
//! The registry knows the questions, not who answers: one [`Admission`] is given to it. Every write that passes the verbs
//! carries the same [`Attributes`].

use std::sync::Arc;

use portico_auth::Authorizer;
use portico_machinery::{Object, UserInfo};
use portico_store::{Operation as StoreOperation, Record, Txn, TxnError};

use crate::hooks::Pending;
use crate::options::{CreateOptions, DeleteOptions, PatchOptions, UpdateOptions};
use crate::registry::{Context, Part, Place, Verbs};
use crate::served::ServedResource;

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

/// A valid write of an object.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    /// What the write is.
    pub attributes: Attributes<'a>,
    /// Who knows what its writer may do.
    pub authorizer: &'a dyn Authorizer,
    /// What is written.
    pub new: &'a Object,
    /// What was there; nothing for a create.
    pub old: Option<&'a Object>,
}

impl<'a> Write<'a> {
    /// Who writes.
    #[must_use]
    pub fn user(&self) -> &'a UserInfo {
        &self.attributes.context.user
    }

    /// The verb that authorizers know.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        self.attributes.verb()
    }

    /// The object or a subresource.
    #[must_use]
    pub fn part(&self) -> Part<'a> {
        self.attributes.part
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
        verbs: &'a Verbs,
        attributes: Attributes<'a>,
        new: Option<&'a mut Object>,
        old: Option<&'a Object>,
    ) -> Option<Pending<'a, ()>>;

    /// Accepts or refuses what is valid; gives warnings for the caller. A delete has only an old object, a connection
    /// none.
    fn validate<'a>(
        &'a self,
        verbs: &'a Verbs,
        attributes: Attributes<'a>,
        new: Option<&'a Object>,
        old: Option<&'a Object>,
    ) -> Option<Pending<'a, Vec<String>>>;

    /// Refuses a write that does not fit into the quotas, for a dry run.
    fn check_quota<'a>(&'a self, verbs: &'a Verbs, write: &'a Write<'a>) -> Option<Pending<'a, ()>>;

    /// Commits a valid write, and the checks of what it relies on, together with what counts it in quotas.
    fn commit<'a>(
        &'a self,
        verbs: &'a Verbs,
        write: &'a Write<'a>,
        txn: &'a Txn,
        checks: &'a [StoreOperation],
    ) -> Option<Pending<'a, Charged>>;
}

/// Admission that accepts everything and counts nothing.
pub struct AdmitAll;

impl Admission for AdmitAll {
    fn mutate<'a>(
        &'a self,
        _verbs: &'a Verbs,
        _attributes: Attributes<'a>,
        _new: Option<&'a mut Object>,
        _old: Option<&'a Object>,
    ) -> Option<Pending<'a, ()>> {
        None
    }

    fn validate<'a>(
        &'a self,
        _verbs: &'a Verbs,
        _attributes: Attributes<'a>,
        _new: Option<&'a Object>,
        _old: Option<&'a Object>,
    ) -> Option<Pending<'a, Vec<String>>> {
        None
    }

    fn check_quota<'a>(&'a self, _verbs: &'a Verbs, _write: &'a Write<'a>) -> Option<Pending<'a, ()>> {
        None
    }

    fn commit<'a>(
        &'a self,
        _verbs: &'a Verbs,
        _write: &'a Write<'a>,
        _txn: &'a Txn,
        _checks: &'a [StoreOperation],
    ) -> Option<Pending<'a, Charged>> {
        None
    }
}

impl Verbs {
    /// The first half of admission: before a write is prepared and validated.
    pub(crate) async fn admit_mutate(
        &self,
        attributes: Attributes<'_>,
        new: Option<&mut Object>,
        old: Option<&Object>,
    ) -> crate::Result<()> {
        match self.admission.mutate(self, attributes, new, old) {
            Some(asked) => asked.await,
            None => Ok(()),
        }
    }

    /// The second half: once a write is valid. Gives warnings for the caller.
    pub(crate) async fn admit_validate(
        &self,
        attributes: Attributes<'_>,
        new: Option<&Object>,
        old: Option<&Object>,
    ) -> crate::Result<Vec<String>> {
        match self.admission.validate(self, attributes, new, old) {
            Some(asked) => asked.await,
            None => Ok(Vec::new()),
        }
    }

    /// Refuses a write that does not fit into the quotas, for a dry run.
    pub(crate) async fn check_quota(&self, write: &Write<'_>) -> crate::Result<()> {
        match self.admission.check_quota(self, write) {
            Some(asked) => asked.await,
            None => Ok(()),
        }
    }
}
