//! Kinds whose writes involve other objects: what they look up before a write is prepared, what goes with it in the
//! same transaction, and which of them refuse a writer before anything is validated.
//!
//! Strategies see one object; the few kinds that need more have a row in a table of hooks. A write that loses a race for
//! something that it wanted to take along is begun anew, so that it sees who was faster.

use std::future::Future;
use std::pin::Pin;

use portico_machinery::{Object, Status};
use portico_store::{Key, Operation, TxnError};
use portico_validation::Errors;

use crate::Result;
use crate::by_resource::ByResource;
use crate::objects::Objects;
use crate::served::ServedResource;
use crate::typed::{Context, Part};
use crate::write::Write;

/// A write that begins.
#[derive(Clone, Copy)]
pub struct Beginning<'a> {
    /// Where the other objects are.
    pub objects: &'a Objects,
    /// The kind.
    pub served: &'a ServedResource,
    /// The object or the subresource.
    pub part: Part<'a>,
    /// What is there; nothing for a create.
    pub old: Option<&'a Object>,
    /// Whether nothing is written in the end.
    pub dry_run: bool,
}

/// What is under way.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// See the module.
pub trait TransactionHooks: Send + Sync {
    /// Before anything of a write is prepared or validated: fills in what depends on other objects, refuses what they
    /// rule out, and names further operations of the same transaction. May be called again for the same write.
    fn begin<'a>(&'a self, write: Beginning<'a>, new: &'a mut Object) -> Pending<'a, Vec<Operation>>;

    /// What goes with a removal.
    fn end<'a>(&'a self, _objects: &'a Objects, _last: &'a Object) -> Pending<'a, Vec<Operation>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// Checks whether the caller may write such an object: as admission has made it, before anything of it is validated.
pub trait WriteGuard: Send + Sync {
    /// Refuses a write whose caller would give away what they do not hold. `name` is that of the request's path, empty for a POST.
    ///
    /// # Errors
    /// 403, 404 as upstream's policy-based storage of the kind.
    fn check<'a>(
        &'a self,
        objects: &'a Objects,
        context: &'a Context,
        served: &'a ServedResource,
        name: &'a str,
        new: &'a Object,
        old: Option<&'a Object>,
    ) -> Pending<'a, ()>;
}

/// Checks the permissions that a valid write needs in addition to that of its verb.
pub trait WritePermissions: Send + Sync {
    /// Returns what the caller may not do, as errors of fields. Runs before validating admission.
    fn denied<'a>(&'a self, objects: &'a Objects, write: Write<'a>) -> Pending<'a, Errors>;
}

/// The hooks of one resource.
#[derive(Clone, Copy, Default)]
struct Hooks {
    transaction: Option<&'static dyn TransactionHooks>,
    guard: Option<&'static dyn WriteGuard>,
    permissions: Option<&'static dyn WritePermissions>,
}

/// The resources whose writes involve other objects.
#[derive(Clone, Default)]
pub(crate) struct HookTable {
    hooks: ByResource<Hooks>,
}

impl HookTable {
    pub(crate) fn add_transaction(
        &mut self,
        (group, resource): (&'static str, &'static str),
        hooks: &'static dyn TransactionHooks,
    ) {
        self.hooks.entry(group, resource).transaction = Some(hooks);
    }

    pub(crate) fn add_guard(
        &mut self,
        (group, resource): (&'static str, &'static str),
        guard: &'static dyn WriteGuard,
    ) {
        self.hooks.entry(group, resource).guard = Some(guard);
    }

    pub(crate) fn add_permissions(
        &mut self,
        (group, resource): (&'static str, &'static str),
        permissions: &'static dyn WritePermissions,
    ) {
        self.hooks.entry(group, resource).permissions = Some(permissions);
    }

    /// What the kind does with other objects.
    pub(crate) fn transaction(&self, served: &ServedResource) -> Option<&'static dyn TransactionHooks> {
        self.hooks.get(&served.resource)?.transaction
    }

    /// Begins a write, if the kind has something to do then.
    pub(crate) async fn begin(&self, write: Beginning<'_>, new: &mut Object) -> Result<Vec<Operation>> {
        match self.transaction(write.served) {
            Some(hooks) => hooks.begin(write, new).await,
            None => Ok(Vec::new()),
        }
    }

    /// Asks the kind's guard, if it has one, whether the caller may write this.
    pub(crate) async fn guard(
        &self,
        objects: &Objects,
        context: &Context,
        served: &ServedResource,
        name: &str,
        new: &Object,
        old: Option<&Object>,
    ) -> Result<()> {
        match self.hooks.get(&served.resource).and_then(|hooks| hooks.guard) {
            Some(guard) => guard.check(objects, context, served, name, new, old).await,
            None => Ok(()),
        }
    }

    /// Refuses a valid write with 422 if its caller lacks further permissions.
    pub(crate) async fn check_permissions(
        &self,
        objects: &Objects,
        served: &ServedResource,
        write: Write<'_>,
    ) -> Result<()> {
        let Some(permissions) = self.hooks.get(&served.resource).and_then(|hooks| hooks.permissions) else {
            return Ok(());
        };
        let errors = permissions.denied(objects, write).await?;
        if errors.is_empty() {
            return Ok(());
        }
        Err(Box::new(Status::invalid(&served.stored_info().group_kind(), write.new.name(), &errors)))
    }
}

/// Whether a transaction failed over something else than the object that it is about.
pub fn lost_another(error: &TxnError, own: &Key) -> bool {
    match error {
        TxnError::Exists { key, .. } | TxnError::Conflict { key, .. } | TxnError::NotFound { key } => {
            key != own
        }
        _ => false,
    }
}
