//! Hooks of kinds whose writes involve other objects: lookups before a write is prepared, operations in the same transaction,
//! and permission checks before validation.
//!
//! Strategies see one object; the few kinds that need more have a row in a table of hooks. If a concurrent writer changes
//! another object of the transaction, the write is retried, so that the hooks see the newer state.

use std::future::Future;
use std::pin::Pin;

use portico_machinery::{Object, Status};
use portico_store::{Key, Operation, TxnError};
use portico_validation::Errors;

use crate::Result;
use crate::objects::Objects;
use crate::resource_map::ResourceMap;
use crate::served_resource::ServedResource;
use crate::verb_types::{Context, ObjectPart};
use crate::write::Write;

/// Context of a write, passed to [`TransactionHooks`].
#[derive(Clone, Copy)]
pub struct TxnContext<'a> {
    /// Access to other objects.
    pub objects: &'a Objects,
    /// Kind of the object.
    pub served_resource: &'a ServedResource,
    /// Part that is written: the object or a subresource.
    pub part: ObjectPart<'a>,
    /// Current object; `None` for a create.
    pub old: Option<&'a Object>,
    /// True for a dry run.
    pub dry_run: bool,
}

/// Boxed future of hooks and admission.
pub type ResultFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Hooks that look up other objects and add operations to the transaction of a write.
pub trait TransactionHooks: Send + Sync {
    /// Runs before a write is prepared or validated. Sets fields that depend on other objects, refuses writes that conflict with
    /// them, and returns further operations for the transaction. Called again for each retry of a write.
    fn before_write<'a>(
        &'a self,
        write: TxnContext<'a>,
        new: &'a mut Object,
    ) -> ResultFuture<'a, Vec<Operation>>;

    /// Returns operations for the transaction of a removal.
    fn before_removal<'a>(
        &'a self,
        _objects: &'a Objects,
        _last: &'a Object,
    ) -> ResultFuture<'a, Vec<Operation>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// Check of the caller's permissions after mutating admission and before validation.
pub trait WriteGuard: Send + Sync {
    /// Refuses a write that would grant permissions which the caller lacks. `name` is the name in the path, empty for a POST.
    ///
    /// # Errors
    /// Status 403 or 404 as in upstream's policy-based storage of the kind.
    fn check<'a>(
        &'a self,
        objects: &'a Objects,
        context: &'a Context,
        served_resource: &'a ServedResource,
        name: &'a str,
        new: &'a Object,
        old: Option<&'a Object>,
    ) -> ResultFuture<'a, ()>;
}

/// Check of permissions that a valid write needs in addition to its verb.
pub trait WritePermissions: Send + Sync {
    /// Returns the missing permissions as field errors. Runs before validating admission.
    fn missing_permissions<'a>(&'a self, objects: &'a Objects, write: Write<'a>) -> ResultFuture<'a, Errors>;
}

/// Hooks of one resource.
#[derive(Clone, Copy, Default)]
struct Hooks {
    transaction: Option<&'static dyn TransactionHooks>,
    guard: Option<&'static dyn WriteGuard>,
    permissions: Option<&'static dyn WritePermissions>,
}

/// Hooks of all resources whose writes involve other objects.
#[derive(Clone, Default)]
pub(crate) struct HookTable {
    hooks: ResourceMap<Hooks>,
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

    /// Transaction hooks of a resource, if it has any.
    pub(crate) fn transaction(
        &self,
        served_resource: &ServedResource,
    ) -> Option<&'static dyn TransactionHooks> {
        self.hooks.get(&served_resource.resource)?.transaction
    }

    /// Runs the hook before a write, if the kind has one.
    pub(crate) async fn before_write(
        &self,
        write: TxnContext<'_>,
        new: &mut Object,
    ) -> Result<Vec<Operation>> {
        match self.transaction(write.served_resource) {
            Some(hooks) => hooks.before_write(write, new).await,
            None => Ok(Vec::new()),
        }
    }

    /// Runs the kind's guard, if it has one.
    pub(crate) async fn check_guard(
        &self,
        objects: &Objects,
        context: &Context,
        served_resource: &ServedResource,
        name: &str,
        new: &Object,
        old: Option<&Object>,
    ) -> Result<()> {
        match self.hooks.get(&served_resource.resource).and_then(|hooks| hooks.guard) {
            Some(guard) => guard.check(objects, context, served_resource, name, new, old).await,
            None => Ok(()),
        }
    }

    /// Refuses a valid write with status 422 if its caller lacks further permissions.
    pub(crate) async fn check_permissions(
        &self,
        objects: &Objects,
        served_resource: &ServedResource,
        write: Write<'_>,
    ) -> Result<()> {
        let Some(permissions) = self.hooks.get(&served_resource.resource).and_then(|hooks| hooks.permissions)
        else {
            return Ok(());
        };
        let errors = permissions.missing_permissions(objects, write).await?;
        if errors.is_empty() {
            return Ok(());
        }
        Err(Box::new(Status::invalid(&served_resource.stored_info().group_kind(), write.new.name(), &errors)))
    }
}

/// True if a transaction failed because of an object other than the written one.
pub fn is_about_other_object(error: &TxnError, own: &Key) -> bool {
    match error {
        TxnError::Exists { key, .. } | TxnError::Conflict { key, .. } | TxnError::NotFound { key } => {
            key != own
        }
        _ => false,
    }
}
