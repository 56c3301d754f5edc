//! States of the objects of a group before the group is written: from the cache, or read from the database by the writer.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::cache::Cache;
use crate::decode::{DecodeError, Decoded};
use crate::error::StoreError;
use crate::key::{Key, Resource};
use crate::read_only;
use crate::record::Record;
use crate::snapshot::Objects;
use crate::txn::{PreparedTxn, TxnError};

/// State of an object, which may be unreadable; `None` if it does not exist. `Err` is the reason why its
/// readability is unknown now.
pub(crate) type PriorState = Result<Option<Arc<Record>>, String>;

/// Converts a decoded value to the prior state; `uid` is the UID of the row, used for a value that cannot be read.
pub(crate) fn prior_state(
    read: Result<Decoded, DecodeError>,
    uid: impl FnOnce() -> Result<String, sqlx::Error>,
) -> Result<PriorState, sqlx::Error> {
    match read {
        Ok(Ok(record)) => Ok(Ok(Some(record.into()))),
        Ok(Err(object)) => Ok(Ok(Some(object.with_uid(&uid()?).record))),
        Err(DecodeError::Sealed { key, reason }) => Ok(Err(StoreError::Sealed { key, reason }.to_string())),
        Err(DecodeError::Database(error)) => Err(error),
    }
}

/// Prior states of the objects of a group.
pub(crate) struct PriorStates {
    /// Cached objects of each resource; `None` if the resource is not cached.
    cached: Vec<(Resource, Option<Arc<Objects>>)>,
    read_states: HashMap<Key, PriorState>,
}

impl PriorStates {
    /// Returns the cached objects, and the keys that must be read from the database. No other write may happen until the group is
    /// written. Objects that are evicted from the cache during that time stay here.
    pub(crate) fn new<'t>(
        cache: &Cache,
        txns: impl Iterator<Item = &'t PreparedTxn>,
    ) -> (Self, BTreeSet<Key>) {
        let (mut prior_states, mut unread) =
            (Self { cached: Vec::new(), read_states: HashMap::new() }, BTreeSet::new());
        let operations = txns.flat_map(|prepared| &prepared.txn.operations);
        for key in operations.map(|operation| &operation.key).chain([read_only::key()]) {
            if prior_states.objects(cache, key.resource()).is_none() {
                unread.insert(key.clone());
            }
        }
        (prior_states, unread)
    }

    fn objects(&mut self, cache: &Cache, resource: &Resource) -> Option<&Arc<Objects>> {
        let position = self.cached.iter().position(|(cached_resource, _)| cached_resource == resource);
        let index = position.unwrap_or_else(|| {
            self.cached.push((resource.clone(), objects(cache, resource)));
            self.cached.len() - 1
        });
        self.cached[index].1.as_ref()
    }

    /// True if the objects of a resource of this group are cached.
    pub(crate) fn is_cached(&self, resource: &Resource) -> bool {
        self.cached.iter().any(|(cached_resource, objects)| cached_resource == resource && objects.is_some())
    }

    /// Adds the states that were read. A key without a state does not exist.
    pub(crate) fn set_read_states(&mut self, read: HashMap<Key, PriorState>) {
        self.read_states = read;
    }

    /// Returns the state of an object before the group.
    pub(crate) fn get(&self, key: &Key) -> Result<Option<Arc<Record>>, TxnError> {
        let cached = self.cached.iter().find(|(resource, _)| resource == key.resource());
        if let Some(objects) = cached.and_then(|(_, objects)| objects.as_ref()) {
            return Ok(objects.get_any(key.path()));
        }
        match self.read_states.get(key) {
            Some(Ok(state)) => Ok(state.clone()),
            Some(Err(reason)) => Err(TxnError::Sealed(reason.clone())),
            None => Ok(None),
        }
    }
}

/// Returns the cached objects of a resource; an empty set if the database does not contain the resource.
fn objects(cache: &Cache, resource: &Resource) -> Option<Arc<Objects>> {
    let slot = cache.slot(resource);
    slot.objects().or_else(|| (!slot.may_be_stored()).then(Arc::default))
}
