//! Preconditions of a write on other objects: the namespace of a new object, and the definition of its kind. The transaction
//! checks both again, so that they cannot change between the decision and the commit.
//!
//! A check costs one lookup in the cache of the store. It fails if the record has changed in any way; whether the change is
//! relevant is decided before the write is retried.

use std::sync::Arc;

use portico_kit::slow_trace;
use portico_machinery::status::Reason;
use portico_machinery::{Object, Status};
use portico_store::{Change, Key, Operation, Precondition, Record, Txn, TxnError};

use crate::Result;
use crate::admission::Attributes;
use crate::attempts::{MAX_WRITE_ATTEMPTS, definition_changed, too_busy};
use crate::latencies::COMMIT;
use crate::served_resource::ServedResource;
use crate::stored_object::StoredObject;
use crate::verbs::Verbs;
use crate::write::Write;

/// Message of etcd for a request larger than its `--max-request-bytes`.
const TOO_LARGE: &str = "etcdserver: request is too large";

impl Verbs {
    /// Commits a write together with its precondition checks and the updates of quotas. If a check fails, repeats it with the
    /// newest state while that state admits the write.
    ///
    /// # Errors
    /// Status of a conflict between the newest state and the write. Other failures are in the inner result.
    pub(crate) async fn commit_write(
        &self,
        attributes: Attributes<'_>,
        write: Write<'_>,
        txn: Txn,
    ) -> Result<Result<Arc<Record>, TxnError>> {
        let served_resource = attributes.served_resource;
        self.check_size(&txn)?;
        let created = write.old.is_none().then_some(write.new);
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let checks = self.preconditions(served_resource, created).await?;
            match self.commit_charged(attributes, write, &txn, checks).await? {
                Err(error) if is_about_precondition(&error, &txn) => {}
                committed => return Ok(committed),
            }
        }
        Err(too_busy(&served_resource.resource, write.new.name()))
    }

    /// Refuses an object larger than the configured limit, with the error that kube-apiserver passes on from etcd.
    fn check_size(&self, txn: &Txn) -> Result<()> {
        let max_bytes = self.objects.settings.max_object_bytes;
        let is_larger = |operation: &Operation| match &operation.change {
            // The store reports objects beyond its own limit.
            Change::Put(value) => value.json().len() > max_bytes && max_bytes < Txn::MAX_VALUE_BYTES,
            _ => false,
        };
        match txn.operations.first().is_some_and(is_larger) {
            true => Err(Box::new(Status::failure(Reason::Unknown, TOO_LARGE))),
            false => Ok(()),
        }
    }

    /// Commits a write and these checks, and charges quotas if there are any.
    async fn commit_charged(
        &self,
        attributes: Attributes<'_>,
        write: Write<'_>,
        txn: &Txn,
        checks: Vec<Operation>,
    ) -> Result<Result<Arc<Record>, TxnError>> {
        if let Some(quota_commit) = self.admission.commit(&self.objects, attributes, write, txn, &checks)
            && let Some(result) = slow_trace::part(COMMIT, quota_commit).await?
        {
            return Ok(result);
        }
        let mut txn_with_checks = txn.clone();
        txn_with_checks.operations.extend(checks);
        Ok(self.commit(txn_with_checks).await)
    }

    /// Commits a write that quotas do not count, such as setting a deletion timestamp, with the check of its definition.
    ///
    /// # Errors
    /// Same errors as [`Verbs::commit_write`].
    pub(crate) async fn commit_checked(
        &self,
        served_resource: &ServedResource,
        txn: Txn,
    ) -> Result<Result<Arc<Record>, TxnError>> {
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let checks = self.preconditions(served_resource, None).await?;
            let mut txn_with_checks = txn.clone();
            txn_with_checks.operations.extend(checks);
            match self.commit(txn_with_checks).await {
                Err(error) if is_about_precondition(&error, &txn) => {}
                committed => return Ok(committed),
            }
        }
        let name = txn.operations.first().map_or("", |own| own.key.name());
        Err(too_busy(&served_resource.resource, name))
    }

    /// Precondition checks of a write, from the current state; `created` is a new object.
    async fn preconditions(
        &self,
        served_resource: &ServedResource,
        created: Option<&Object>,
    ) -> Result<Vec<Operation>> {
        let mut checks = Vec::new();
        if let Some(object) = created.filter(|_| self.admission.namespace_rules().lifecycle) {
            checks.extend(
                self.objects.admit_into_namespace(served_resource, object).await?.as_deref().map(unchanged),
            );
        }
        checks.extend(self.check_same_definition(served_resource, created)?.as_deref().map(unchanged));
        Ok(checks)
    }

    /// Record of a custom resource's definition, which must still serve the version that validated the request.
    fn check_same_definition(
        &self,
        served_resource: &ServedResource,
        created: Option<&Object>,
    ) -> Result<Option<Arc<Record>>> {
        let Some(custom) = &served_resource.custom else { return Ok(None) };
        if let Some(object) = created {
            self.objects.check_definition(served_resource, object)?;
        }
        let current = self.objects.definition(&served_resource.resource);
        let same = current.filter(|definition| {
            definition.facts.is_reachable() && definition.facts.serves_same_versions(&custom.facts)
        });
        let same = same.ok_or_else(|| definition_changed(&served_resource.resource))?;
        Ok(Some(same.record))
    }
}

/// True if a transaction failed because of one of these objects.
pub fn is_about_any(error: &TxnError, keys: &[Key]) -> bool {
    object_of(error).is_some_and(|key| keys.contains(key))
}

/// True if a transaction failed because of a precondition: an object that it does not write.
fn is_about_precondition(error: &TxnError, own: &Txn) -> bool {
    object_of(error).is_some_and(|key| own.operations.iter().all(|operation| operation.key != *key))
}

/// Object because of which a transaction failed.
fn object_of(error: &TxnError) -> Option<&Key> {
    match error {
        TxnError::Exists { key, .. }
        | TxnError::Conflict { key, .. }
        | TxnError::NotFound { key }
        | TxnError::Unreadable { key } => Some(key),
        _ => None,
    }
}

/// Operations that write objects unchanged, or only check their revisions if they do not fit into the transaction.
pub(crate) fn written_unchanged(objects: &[StoredObject]) -> Vec<Operation> {
    let mut bytes = 0;
    let written = |stored: &StoredObject| {
        let record = stored.record();
        bytes += record.value.json().len();
        let change = match bytes > Txn::SHARED_BYTES / 2 {
            true => Change::Check,
            false => Change::Put(record.value.clone()),
        };
        Operation { change, ..unchanged(record) }
    };
    objects.iter().take(Txn::SHARED_OPERATIONS / 2).map(written).collect()
}

/// Operation that checks that a record is unchanged.
fn unchanged(record: &Record) -> Operation {
    Operation {
        key: record.key.clone(),
        precondition: Precondition::Revision(record.revision),
        change: Change::Check,
    }
}
