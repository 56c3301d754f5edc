//! Writes that quotas count.

use std::sync::Arc;

use portico_machinery::Object;
use portico_quota::Amounts;
use portico_registry::stored;
use portico_store::{Change, Expect, Operation, Record, Snapshot, Store, TxnError};

use super::encoder::Encoder;
use crate::listing::unreadable_in;

/// Write that quotas have to count, with all that is needed to commit it.
pub(crate) struct Counting<'a> {
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) operations: &'a [Operation],
    pub(crate) checks: &'a [Operation],
    pub(crate) encoder: Encoder,
}

impl Counting<'_> {
    /// Returns the stored quotas of the namespace. `None` if they are not in memory or one of them cannot be read.
    pub(crate) fn quotas(&self, namespace: &str) -> Option<Vec<Arc<Record>>> {
        let quotas = self.store.cached(&self.encoder.kind.storage)?;
        let is_complete = self.store.why_incomplete(quotas.resource()).is_none()
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

    /// Returns the error with which the write alone would fail, as far as the cache shows it, so that other writes do not
    /// fail with it.
    pub(crate) fn unexpected(&self) -> Option<TxnError> {
        self.operations.iter().chain(self.checks).find_map(|operation| {
            let snapshot: Snapshot = self.store.cached(operation.key.resource())?;
            let (key, current) = (operation.key.clone(), snapshot.get(&operation.key).cloned());
            if snapshot.unreadable(operation.key.path()).is_some() {
                return Some(TxnError::Unreadable { key });
            }
            match (operation.expect, current) {
                (Expect::Absent, Some(current)) => Some(TxnError::Exists { key, current }),
                (Expect::Revision(_) | Expect::Exists, None) => Some(TxnError::NotFound { key }),
                (Expect::Revision(revision), Some(current)) if current.revision != revision => {
                    Some(TxnError::Conflict { key, current })
                }
                _ => None,
            }
        })
    }

    pub(crate) fn fits_what_is_stored<E>(
        &self,
        namespace: &str,
        taken: &impl Fn(&[&Object]) -> Result<Vec<Amounts>, E>,
    ) -> Result<(), E> {
        let quotas = self.quotas(namespace).unwrap_or_default();
        let quotas: Vec<Object> = quotas.iter().map(|record| stored::decode(record)).collect();
        taken(&quotas.iter().collect::<Vec<_>>()).map(drop)
    }
}
