//! A write that asks to be counted.

use std::sync::Arc;

use portico_machinery::Object;
use portico_quota::Amounts;
use portico_registry::stored;
use portico_store::{Change, Expect, Operation, Record, Snapshot, Store, TxnError};

use super::encoder::Encoder;

/// A write that asks to be counted.
pub(crate) struct Counting<'a> {
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) operations: &'a [Operation],
    pub(crate) checks: &'a [Operation],
    pub(crate) encoder: Encoder,
}

impl Counting<'_> {
    /// The quotas of the namespace, as they are stored now.
    pub(crate) fn quotas(&self, namespace: &str) -> Vec<Arc<Record>> {
        let snapshot = self.store.cached(&self.encoder.kind.storage);
        snapshot.map_or_else(Vec::new, |quotas| quotas.range(Some(namespace), None).cloned().collect())
    }

    pub(crate) fn bytes(&self) -> usize {
        let weight = |operation: &Operation| match &operation.change {
            Change::Put(value) | Change::Delete(value) => value.json().len(),
            Change::Check => 0,
        };
        self.operations.iter().map(weight).sum()
    }

    /// How the write would fail by itself, as far as that can be known: it must not fail others with it.
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
        let quotas: Vec<Object> =
            self.quotas(namespace).iter().map(|record| stored::decode(record)).collect();
        taken(&quotas.iter().collect::<Vec<_>>()).map(drop)
    }
}
