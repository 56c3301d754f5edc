//! What a write relies on besides its own object: the namespace that it creates something in, and the definition of its
//! kind. Both are checked once more inside the transaction that writes, so that neither can change in between.
//!
//! A check costs the writer one lookup in its cache. It fails when the record has changed at all; whether the change
//! matters is decided outside, before the write is tried again.

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

/// etcd's words for a request beyond its `--max-request-bytes`.
const TOO_LARGE: &str = "etcdserver: request is too large";

impl Verbs {
    /// Commits a write together with the checks of what it relies on, and with what counts it. A check that fails is made
    /// anew from the newest state for as long as that still admits the write.
    ///
    /// # Errors
    /// The conflict of the newest state with the write; what else goes wrong is the inner result's.
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

    /// Refuses an object beyond the size that the settings allow as kube-apiserver passes on etcd's refusal.
    fn check_size(&self, txn: &Txn) -> Result<()> {
        let most = self.objects.settings.max_object_bytes;
        let is_larger = |operation: &Operation| match &operation.change {
            // Beyond its own limit the store says which object is too large.
            Change::Put(value) => value.json().len() > most && most < Txn::MAX_VALUE_BYTES,
            _ => false,
        };
        match txn.operations.first().is_some_and(is_larger) {
            true => Err(Box::new(Status::failure(Reason::Unknown, TOO_LARGE))),
            false => Ok(()),
        }
    }

    /// Commits a write and these checks, counted in quotas where there are some.
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

    /// Commits a write that no quota counts, such as a mark of deletion, together with the check of its definition.
    ///
    /// # Errors
    /// As [`Verbs::commit_write`].
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

    /// The checks of what a write relies on, as it is now; `created` is a new object.
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

    /// The record of a custom resource's definition, which must still serve what the request was validated along.
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

/// Whether a transaction failed over one of these.
pub fn is_about(error: &TxnError, keys: &[Key]) -> bool {
    object_of(error).is_some_and(|key| keys.contains(key))
}

/// Whether a transaction failed over an object that is not among those it was to write: one of its preconditions.
fn is_about_another(error: &TxnError, own: &Txn) -> bool {
    object_of(error).is_some_and(|key| own.operations.iter().all(|operation| operation.key != *key))
}

/// The object that a transaction failed over.
fn object_of(error: &TxnError) -> Option<&Key> {
    match error {
        TxnError::Exists { key, .. }
        | TxnError::Conflict { key, .. }
        | TxnError::NotFound { key }
        | TxnError::Unreadable { key } => Some(key),
        _ => None,
    }
}

/// Writes objects as they were read, or checks that they are so where they have no room in a transaction.
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

/// Checks that a record is as it was read.
fn unchanged(record: &Record) -> Operation {
    Operation { key: record.key.clone(), expect: Expect::Revision(record.revision), change: Change::Check }
}
