//! Preconditions of a write on other objects: the namespace of a new object, and the definition of its kind. The transaction
//! checks both again, so that they cannot change between the decision and the commit.
//!
//! A check costs one lookup in the cache of the store. It fails if the record has changed in any way; whether the change is
//! relevant is decided before the write is retried.

use std::sync::Arc;

use portico_kit::slow_trace;
use portico_machinery::status::Reason;
use portico_machinery::{Object, Status};
use portico_store::{Change, Expect, Key, Operation, Record, Txn, TxnError};

use crate::Result;
use crate::admission::Attributes;
use crate::attempts::{MAX_WRITE_ATTEMPTS, definition_changed, too_busy};
use crate::latencies::COMMIT;
use crate::served::ServedResource;
use crate::stored::Stored;
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
        let served = attributes.served;
        self.check_size(&txn)?;
        let created = write.old.is_none().then_some(write.new);
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let checks = self.preconditions(served, created).await?;
            match self.commit_charged(attributes, write, &txn, checks).await? {
                Err(error) if is_about_another(&error, &txn) => {}
                committed => return Ok(committed),
            }
        }
        Err(too_busy(&served.resource, write.new.name()))
    }

    /// Refuses an object larger than the configured limit, with the error that kube-apiserver passes on from etcd.
    fn check_size(&self, txn: &Txn) -> Result<()> {
        let most = self.objects.settings.max_object_bytes;
        let is_larger = |operation: &Operation| match &operation.change {
            // The store reports objects beyond its own limit.
            Change::Put(value) => value.json().len() > most && most < Txn::MAX_VALUE_BYTES,
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
        if let Some(asked) = self.admission.commit(&self.objects, attributes, write, txn, &checks)
            && let Some(ended) = slow_trace::part(COMMIT, asked).await?
        {
            return Ok(ended);
        }
        let mut all = txn.clone();
        all.operations.extend(checks);
        Ok(self.commit(all).await)
    }

    /// Commits a write that quotas do not count, such as setting a deletion timestamp, with the check of its definition.
    ///
    /// # Errors
    /// Same errors as [`Verbs::commit_write`].
    pub(crate) async fn commit_checked(
        &self,
        served: &ServedResource,
        txn: Txn,
    ) -> Result<Result<Arc<Record>, TxnError>> {
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let checks = self.preconditions(served, None).await?;
            let mut all = txn.clone();
            all.operations.extend(checks);
            match self.commit(all).await {
                Err(error) if is_about_another(&error, &txn) => {}
                committed => return Ok(committed),
            }
        }
        let name = txn.operations.first().map_or("", |own| own.key.name());
        Err(too_busy(&served.resource, name))
    }

    /// Precondition checks of a write, from the current state; `created` is a new object.
    async fn preconditions(
        &self,
        served: &ServedResource,
        created: Option<&Object>,
    ) -> Result<Vec<Operation>> {
        let mut checks = Vec::new();
        if let Some(object) = created.filter(|_| self.admission.namespace_rules().lifecycle) {
            checks.extend(self.objects.admit_into_namespace(served, object).await?.as_deref().map(unchanged));
        }
        checks.extend(self.same_definition(served, created)?.as_deref().map(unchanged));
        Ok(checks)
    }

    /// Record of a custom resource's definition, which must still serve the version that validated the request.
    fn same_definition(
        &self,
        served: &ServedResource,
        created: Option<&Object>,
    ) -> Result<Option<Arc<Record>>> {
        let Some(custom) = &served.custom else { return Ok(None) };
        if let Some(object) = created {
            self.objects.admit_of_definition(served, object)?;
        }
        let current = self.objects.definition(&served.resource);
        let same = current.filter(|definition| {
            definition.facts.is_reachable() && definition.facts.serves_like(&custom.facts)
        });
        let same = same.ok_or_else(|| definition_changed(&served.resource))?;
        Ok(Some(same.record))
    }
}

/// True if a transaction failed because of one of these objects.
pub fn is_about(error: &TxnError, keys: &[Key]) -> bool {
    object_of(error).is_some_and(|key| keys.contains(key))
}

/// True if a transaction failed because of a precondition: an object that it does not write.
fn is_about_another(error: &TxnError, own: &Txn) -> bool {
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
pub(crate) fn written_unchanged(objects: &[Stored]) -> Vec<Operation> {
    let mut bytes = 0;
    let written = |stored: &Stored| {
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
    Operation { key: record.key.clone(), expect: Expect::Revision(record.revision), change: Change::Check }
}
