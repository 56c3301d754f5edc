//! Values derived from the objects of a resource, once for each state of an object: compiled policies and webhooks.
//!
//! Values are derived from the snapshot of the store when the next request reads them. A policy therefore takes effect with the
//! next request, even if another process wrote it, because the registry reads all commits before it admits a request. The cache
//! is generic over the derived type.
//!
//! If an object becomes unreadable, the value of the last state that this process could read stays active. Without such a value
//! the set is incomplete. The set is also incomplete if objects may be missing from the store.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use portico_machinery::{GroupResource, Object};
use portico_registry::{Objects, Result, ServedResource, stored_object};
use portico_store::{Record, Snapshot, Store, Unreadable};

use crate::listing;

/// Cache of the values derived from each object of a resource, sorted by object name.
pub(crate) struct DerivedCache<T> {
    /// Built-in resource whose objects the values are derived from.
    resource: GroupResource,
    served: OnceLock<Arc<ServedResource>>,
    derive: Box<dyn Fn(&Object) -> T + Send + Sync>,
    current: ArcSwap<DerivedSet<T>>,
    /// Serializes rebuilds of `current`.
    rebuild_lock: Mutex<()>,
}

/// All values derived from one state of a resource.
pub(crate) struct DerivedSet<T> {
    /// Revision of the last change of the resource; negative if nothing was read yet.
    change_revision: i64,
    by_name: BTreeMap<Box<str>, DerivedItem<T>>,
    items: Box<[Arc<T>]>,
    /// Objects that cannot be read, with or without an earlier active value.
    unreadable: Box<[Unreadable]>,
    /// Reason why unidentified objects may be missing.
    missing: Option<String>,
    problem: Option<String>,
}

/// Derived value, and the state of the object from which it was derived.
struct DerivedItem<T> {
    revision: i64,
    uid: Box<str>,
    item: Arc<T>,
}

impl<T> DerivedItem<T> {
    fn new(record: &Record, item: Arc<T>) -> Self {
        Self { revision: record.revision, uid: record.value.uid().into(), item }
    }

    /// True if an unreadable object is a later state of the same object, as far as its name and UID are known.
    fn derives_from(&self, object: &Unreadable) -> bool {
        object.has_key() && (object.uid().is_empty() || *self.uid == *object.uid())
    }
}

impl<T> Clone for DerivedItem<T> {
    fn clone(&self) -> Self {
        Self { revision: self.revision, uid: self.uid.clone(), item: Arc::clone(&self.item) }
    }
}

impl<T> DerivedSet<T> {
    /// Returns the values, sorted by object name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.items.iter()
    }

    /// Names the unreadable objects without an earlier active value, or reports why objects may be missing.
    /// Returns `None` if there are none.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// True if the set was derived from the state of the snapshot or a later one. Unreadable objects can become readable without
    /// a change of the resource, so these are compared too.
    fn covers(&self, snapshot: &Snapshot, missing: Option<&str>) -> bool {
        let is_same = || self.unreadable.iter().eq(snapshot.unreadable_in(None));
        let is_as_new = self.change_revision > snapshot.unchanged_since()
            || (self.change_revision == snapshot.unchanged_since() && is_same());
        is_as_new && self.missing.as_deref() == missing
    }
}

impl<T> Default for DerivedSet<T> {
    fn default() -> Self {
        let (by_name, items, unreadable) = Default::default();
        Self { change_revision: -1, by_name, items, unreadable, missing: None, problem: None }
    }
}

impl<T> DerivedCache<T> {
    pub(crate) fn new(
        group: &str,
        resource: &str,
        derive: impl Fn(&Object) -> T + Send + Sync + 'static,
    ) -> Self {
        let resource = GroupResource::new(group, resource);
        Self {
            resource,
            served: OnceLock::new(),
            derive: Box::new(derive),
            current: ArcSwap::from_pointee(DerivedSet::default()),
            rebuild_lock: Mutex::new(()),
        }
    }

    /// Returns the current values, or `None` if the resource is not in memory.
    pub(crate) fn cached(&self, objects: &Objects) -> Option<Arc<DerivedSet<T>>> {
        Some(
            self.for_snapshot(
                &*objects.store,
                &objects.store.cached_snapshot(&self.served(objects)?.storage)?,
            ),
        )
    }

    /// Returns the current values, and loads the resource if necessary. The set is empty if the resource is not served.
    pub(crate) async fn load(&self, objects: &Objects) -> Result<Arc<DerivedSet<T>>> {
        if let Some(cached) = self.cached(objects) {
            return Ok(cached);
        }
        let Some(served) = self.served(objects) else { return Ok(self.current.load_full()) };
        Ok(self.for_snapshot(&*objects.store, &objects.snapshot(served).await?))
    }

    /// Returns the served resource. Built-in resources are served as long as the process runs, or never: the lookup happens once.
    fn served(&self, objects: &Objects) -> Option<&Arc<ServedResource>> {
        if self.served.get().is_none() {
            let served = objects.served_resource(&self.resource).ok()?;
            // Every request reads the resource, so it stays in memory.
            objects.store.pin(&served.storage);
            let _already_set = self.served.set(served);
        }
        self.served.get()
    }

    fn for_snapshot(&self, store: &dyn Store, snapshot: &Snapshot) -> Arc<DerivedSet<T>> {
        let missing = store.incomplete_reason(snapshot.resource());
        let current = self.current.load_full();
        if current.covers(snapshot, missing.as_deref()) {
            return current;
        }
        let _guard = self.rebuild_lock.lock();
        let before = self.current.load_full();
        if before.covers(snapshot, missing.as_deref()) {
            return before;
        }
        let rebuilt = Arc::new(self.rebuild(snapshot, missing, &before));
        self.current.store(Arc::clone(&rebuilt));
        rebuilt
    }

    /// Derives the values of changed objects; keeps those of unchanged or unreadable objects.
    fn rebuild(
        &self,
        snapshot: &Snapshot,
        missing: Option<String>,
        previous: &DerivedSet<T>,
    ) -> DerivedSet<T> {
        let mut by_name = BTreeMap::new();
        for record in snapshot.iter() {
            let name = record.key.name();
            let unchanged = previous.by_name.get(name).filter(|source| source.revision == record.revision);
            let source = match unchanged {
                Some(source) => source.clone(),
                None => DerivedItem::new(record, Arc::new((self.derive)(&stored_object::decode(record)))),
            };
            by_name.insert(name.into(), source);
        }
        let unreadable: Box<[_]> = snapshot.unreadable_in(None).cloned().collect();
        let mut unknown = Vec::new();
        for object in &unreadable {
            let name = object.key().name();
            match previous.by_name.get(name).filter(|source| source.derives_from(object)) {
                Some(source) => drop(by_name.insert(name.into(), source.clone())),
                None => unknown.push(object),
            }
        }
        let problem = listing::problem(&self.resource, missing.as_deref(), unknown.into_iter());
        let items = by_name.values().map(|source| Arc::clone(&source.item)).collect();
        DerivedSet {
            change_revision: snapshot.unchanged_since(),
            by_name,
            items,
            unreadable,
            missing,
            problem,
        }
    }
}
