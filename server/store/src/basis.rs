//! What the objects that a group of writes is about are before it: out of memory, or read from the database by whoever writes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::cache::Cache;
use crate::decode::{DecodeError, Decoded};
use crate::error::StoreError;
use crate::key::{Key, Resource};
use crate::read_only;
use crate::record::Record;
use crate::snapshot::Objects;
use crate::txn::{Prepared, TxnError};

/// The state of an object, which may be one that cannot be read. Without one: why it is not known now whether it can be.
pub(crate) type Before = Result<Option<Arc<Record>>, String>;

/// What a value that was read says of the object's state; `uid` is that of the row, which one that cannot be read does not show.
pub(crate) fn before(
    read: Result<Decoded, DecodeError>,
    uid: impl FnOnce() -> Result<String, sqlx::Error>,
) -> Result<Before, sqlx::Error> {
    match read {
        Ok(Ok(record)) => Ok(Ok(Some(record.into()))),
        Ok(Err(object)) => Ok(Ok(Some(object.with_uid(&uid()?).record))),
        Err(DecodeError::Sealed { key, reason }) => Ok(Err(StoreError::Sealed { key, reason }.to_string())),
        Err(DecodeError::Database(error)) => Err(error),
    }
}

/// See the module.
pub(crate) struct Basis {
    /// What is in memory of each resource.
    held: Vec<(Resource, Option<Arc<Objects>>)>,
    read: HashMap<Key, Before>,
}

impl Basis {
    /// What memory has, and the keys that have to be read. Nobody may write until the group is written; what leaves memory meanwhile
    /// stays here.
    pub(crate) fn new<'t>(cache: &Cache, txns: impl Iterator<Item = &'t Prepared>) -> (Self, BTreeSet<Key>) {
        let (mut basis, mut unread) = (Self { held: Vec::new(), read: HashMap::new() }, BTreeSet::new());
        let operations = txns.flat_map(|prepared| &prepared.txn.operations);
        for key in operations.map(|operation| &operation.key).chain([read_only::key()]) {
            if basis.objects(cache, key.resource()).is_none() {
                unread.insert(key.clone());
            }
        }
        (basis, unread)
    }

    fn objects(&mut self, cache: &Cache, resource: &Resource) -> Option<&Arc<Objects>> {
        let known = self.held.iter().position(|(known, _)| known == resource);
        let at = known.unwrap_or_else(|| {
            self.held.push((resource.clone(), objects(cache, resource)));
            self.held.len() - 1
        });
        self.held[at].1.as_ref()
    }

    /// Whether the objects of a resource of this group are in memory.
    pub(crate) fn holds(&self, resource: &Resource) -> bool {
        self.held.iter().any(|(held, objects)| held == resource && objects.is_some())
    }

    /// What has been read. A key that is not among it does not exist.
    pub(crate) fn read(&mut self, read: HashMap<Key, Before>) {
        self.read = read;
    }

    /// The state of an object before the group.
    pub(crate) fn get(&self, key: &Key) -> Result<Option<Arc<Record>>, TxnError> {
        let held = self.held.iter().find(|(resource, _)| resource == key.resource());
        if let Some(objects) = held.and_then(|(_, objects)| objects.as_ref()) {
            return Ok(objects.get_any(key.path()));
        }
        match self.read.get(key) {
            Some(Ok(before)) => Ok(before.clone()),
            Some(Err(reason)) => Err(TxnError::Sealed(reason.clone())),
            None => Ok(None),
        }
    }
}

/// Of a resource that the database does not know there are none.
fn objects(cache: &Cache, resource: &Resource) -> Option<Arc<Objects>> {
    let slot = cache.slot(resource);
    slot.objects().or_else(|| (!slot.may_be_stored()).then(Arc::default))
}
