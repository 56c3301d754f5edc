//! Write that quotas count, and the checks made before it joins a transaction.

use std::sync::Arc;

use portico_machinery::Object;
use portico_quota::ResourceList;
use portico_registry::stored_object;
use portico_store::{Change, Operation, Precondition, Record, Snapshot, Store, TxnError};

use super::encoder::Encoder;
use crate::listing::unreadable_in;

/// Write that counts against quotas, with the data that its commit requires.
pub(crate) struct CountedWrite<'a> {
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) operations: &'a [Operation],
    pub(crate) checks: &'a [Operation],
    pub(crate) encoder: Encoder,
}

impl CountedWrite<'_> {
    /// Returns the stored quotas of the namespace. `None` if they are not in memory or one of them cannot be read.
    pub(crate) fn quotas(&self, namespace: &str) -> Option<Vec<Arc<Record>>> {
        let quotas = self.store.cached_snapshot(&self.encoder.kind.storage)?;
        let is_complete = self.store.incomplete_reason(quotas.resource()).is_none()
            && unreadable_in(&quotas, Some(namespace)).next().is_none();
        is_complete.then(|| quotas.range(Some(namespace), None).cloned().collect())
    }

    pub(crate) fn bytes(&self) -> usize {
        let weight = |operation: &Operation| match &operation.change {
            Change::Put(value) | Change::Delete(value) => value.json().len(),
            Change::Check => 0,
        };
        self.operations.iter().map(weight).sum()
    }

    /// Returns the error with which the write would fail on its own, as far as the cached state shows. The check keeps such a
    /// write from making a shared transaction fail.
    pub(crate) fn expected_error(&self) -> Option<TxnError> {
        self.operations.iter().chain(self.checks).find_map(|operation| {
            let snapshot: Snapshot = self.store.cached_snapshot(operation.key.resource())?;
            let (key, current) = (operation.key.clone(), snapshot.get(&operation.key).cloned());
            if snapshot.unreadable(operation.key.path()).is_some() {
                return Some(TxnError::Unreadable { key });
            }
            match (operation.precondition, current) {
                (Precondition::Absent, Some(current)) => Some(TxnError::Exists { key, current }),
                (Precondition::Revision(_) | Precondition::Exists, None) => Some(TxnError::NotFound { key }),
                (Precondition::Revision(revision), Some(current)) if current.revision != revision => {
                    Some(TxnError::Conflict { key, current })
                }
                _ => None,
            }
        })
    }

    pub(crate) fn check_against_stored<E>(
        &self,
        namespace: &str,
        amounts_taken: &impl Fn(&[&Object]) -> Result<Vec<ResourceList>, E>,
    ) -> Result<(), E> {
        let quotas = self.quotas(namespace).unwrap_or_default();
        let quotas: Vec<Object> = quotas.iter().map(|record| stored_object::decode(record)).collect();
        amounts_taken(&quotas.iter().collect::<Vec<_>>()).map(drop)
    }
}
