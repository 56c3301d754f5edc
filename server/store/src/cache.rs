//! Current state of every loaded resource, published as immutable snapshots: readers never block the writer.
//!
//! Changes that are applied while a resource is loaded are buffered ([`Cache::begin_load`]). The cache has a size limit:
//! `budget` counts the bytes, `eviction` selects the resources that stay, and `snapshot_builder` stops a load that does not
//! fit. `slot` is one resource, `uncached` the known facts about a resource that is not cached, `counts` its number of objects.

mod budget;
mod counts;
mod eviction;
mod pending_count;
mod slot;
mod snapshot_builder;
mod uncached;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

pub(crate) use self::budget::Budget;
pub(crate) use self::pending_count::PendingCount;
use self::slot::Loaded;
pub(crate) use self::slot::Slot;
use self::snapshot_builder::weight;
pub(crate) use self::snapshot_builder::{SnapshotBuilder, estimated_weight};
use crate::event::{Event, EventType};
use crate::key::{Key, Resource};
use crate::record::Record;
use crate::snapshot::{Objects, Snapshot};
use crate::unreadable::Unreadable;

/// Slots of all resources that were ever written or read.
pub(crate) struct Cache {
    slots: RwLock<HashMap<Resource, Arc<Slot>>>,
    next_id: AtomicI64,
    budget: Arc<Budget>,
    /// Number of known unreadable objects.
    unreadable: AtomicUsize,
    /// True if other processes write to the database: it may contain a resource that has no slot here.
    is_shared: bool,
    /// Revision of the store when it was opened. No later change affected resources without a slot.
    opened_at: i64,
    /// Revision up to which everything is applied. Locked while a group is applied.
    applied: Mutex<i64>,
}

/// Start of a read of a resource that is not cached.
pub(crate) struct ReadPoint {
    /// Revision to read.
    pub(crate) revision: i64,
    /// Revision of the last change of the resource.
    changed: i64,
}

/// Guard of a running load of a resource. Dropping it ends the load.
pub(crate) struct LoadGuard<'a> {
    slot: &'a Slot,
    /// Revision to read.
    pub(crate) revision: i64,
    changed: i64,
}

impl Drop for LoadGuard<'_> {
    fn drop(&mut self) {
        *self.slot.buffered_events.lock() = None;
    }
}

impl Cache {
    /// Creates an empty cache for a store at this revision. `is_shared`: other processes write to the database.
    pub(crate) fn new(budget: Budget, revision: i64, is_shared: bool) -> Self {
        Self {
            is_shared,
            slots: RwLock::default(),
            next_id: AtomicI64::new(0),
            budget: Arc::new(budget),
            unreadable: AtomicUsize::new(0),
            opened_at: revision,
            applied: Mutex::new(revision),
        }
    }

    /// Adds a resource that the database has under this ID.
    pub(crate) fn insert_stored(&self, id: i64, resource: Resource) {
        self.reserve_id(id);
        let slot = Arc::new(Slot::new(id, true, resource.clone(), self.opened_at));
        self.slots.write().insert(resource, slot);
    }

    /// Reserves an ID that the database uses, so that no new resource gets it.
    pub(crate) fn reserve_id(&self, id: i64) {
        self.next_id.fetch_max(id, Ordering::Relaxed);
    }

    /// Returns the slot of a resource, and creates it if needed.
    pub(crate) fn slot(&self, resource: &Resource) -> Arc<Slot> {
        if let Some(slot) = self.slots.read().get(resource) {
            return slot.clone();
        }
        let mut slots = self.slots.write();
        let slot = slots.entry(resource.clone()).or_insert_with(|| {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
            Arc::new(Slot::new(id, self.is_shared, resource.clone(), self.opened_at))
        });
        slot.clone()
    }

    /// Returns the slot with this database ID.
    pub(crate) fn by_id(&self, id: i64) -> Option<Arc<Slot>> {
        self.slots.read().values().find(|slot| slot.id == id).cloned()
    }

    /// Returns all slots.
    pub(crate) fn slots(&self) -> Vec<Arc<Slot>> {
        self.slots.read().values().cloned().collect()
    }

    /// Returns the keys of cached objects that may be being deleted, and the slots of resources that are not cached.
    pub(crate) fn terminating_keys(&self) -> (Vec<Key>, Vec<Arc<Slot>>) {
        let (mut keys, mut uncached_slots) = (Vec::new(), Vec::new());
        for slot in self.slots() {
            match slot.objects() {
                Some(objects) => {
                    let found = objects.iter().filter(|record| record.may_be_terminating());
                    keys.extend(found.map(|record| record.key.clone()));
                }
                None => uncached_slots.push(slot),
            }
        }
        (keys, uncached_slots)
    }

    /// Returns all resources in the database, by ID.
    pub(crate) fn resources(&self) -> HashMap<i64, Resource> {
        self.slots.read().values().map(|slot| (slot.id, slot.resource.clone())).collect()
    }

    /// Returns the current state of an object, readable or not; `None` also if its resource is not cached.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Record>> {
        self.objects(key.resource())?.get_any(key.path())
    }

    /// Returns the objects of a cached resource.
    pub(crate) fn objects(&self, resource: &Resource) -> Option<Arc<Objects>> {
        self.slots.read().get(resource)?.objects()
    }

    /// True if the record of an event will be in the cache once the event is applied.
    pub(crate) fn will_cache(&self, resource: &Resource, event_type: EventType) -> bool {
        event_type != EventType::Deleted && self.objects(resource).is_some()
    }

    /// Keeps the resource in the cache once it is loaded, regardless of the budget.
    pub(crate) fn pin(&self, resource: &Resource) {
        self.slot(resource).is_pinned.store(true, Ordering::Relaxed);
    }

    /// Returns the known unreadable objects in key order: all those of cached resources, and those of other resources
    /// that reads have found.
    pub(crate) fn unreadable(&self) -> Vec<Unreadable> {
        if self.unreadable.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let mut unreadable = Vec::new();
        for slot in self.slots() {
            match slot.objects() {
                Some(objects) => unreadable.extend(objects.unreadable().cloned()),
                None => unreadable.extend_from_slice(slot.uncached.lock().unreadable()),
            }
        }
        unreadable.sort_by(|a, b| a.key().cmp(b.key()));
        unreadable
    }

    /// Returns the number of known unreadable objects of a resource; `None` if the resource has no slot.
    pub(crate) fn unreadable_of(&self, resource: &Resource) -> Option<usize> {
        let slot = self.slots.read().get(resource)?.clone();
        let count_uncached = || slot.uncached.lock().unreadable().len();
        Some(slot.objects().map_or_else(count_uncached, |objects| objects.unreadable().count()))
    }

    /// Records the unreadable objects that a read of an uncached resource found at a revision.
    pub(crate) fn note_unreadable(&self, slot: &Slot, revision: i64, found: &[Unreadable]) {
        if found.is_empty() {
            return;
        }
        let _applied_guard = self.applied.lock();
        if slot.state.load().is_none() && slot.changed.load(Ordering::Acquire) <= revision {
            let new = slot.uncached.lock().note(found);
            self.unreadable.fetch_add(new, Ordering::Relaxed);
        }
    }

    /// Publishes an object that was unreadable and can be read now, unless it has changed since.
    pub(crate) fn restore_readable(&self, record: Arc<Record>) {
        let _applied_guard = self.applied.lock();
        let slot = self.slot(record.key.resource());
        let Some(loaded) = slot.state.load_full() else {
            let removed = slot.uncached.lock().forget(record.key.path());
            self.unreadable.fetch_sub(removed, Ordering::Relaxed);
            return;
        };
        let unreadable = loaded.objects.get_unreadable(record.key.path());
        if unreadable.is_none_or(|object| object.revision() != record.revision) {
            return;
        }
        let mut objects = (*loaded.objects).clone();
        objects.remove_unreadable(record.key.path());
        self.unreadable.fetch_sub(1, Ordering::Relaxed);
        self.add_bytes(&slot, weight(&record));
        objects.insert(record);
        slot.state.store(Some(Arc::new(Loaded {
            objects: Arc::new(objects),
            unchanged_since: loaded.unchanged_since,
        })));
    }

    /// Returns the builder for a load of a resource. It stops when the budget is used up, unless the resource is pinned.
    pub(crate) fn builder(&self, slot: &Slot) -> SnapshotBuilder {
        let is_pinned = slot.is_pinned.load(Ordering::Relaxed);
        SnapshotBuilder::new(Some((self.budget.clone(), !is_pinned)))
    }

    /// Returns a builder without a budget, for a snapshot that one caller owns.
    pub(crate) fn unbudgeted_builder(&self) -> SnapshotBuilder {
        SnapshotBuilder::new(None)
    }

    /// Starts a load of a resource: changes that are applied from now on are buffered until the load ends.
    pub(crate) fn begin_load<'a>(&self, slot: &'a Slot) -> LoadGuard<'a> {
        let applied = self.applied.lock();
        *slot.buffered_events.lock() = Some(Vec::new());
        LoadGuard { slot, revision: *applied, changed: slot.changed.load(Ordering::Acquire) }
    }

    /// Publishes the loaded objects of a resource at the revision of `load_guard`, with the changes since.
    pub(crate) fn end_load(&self, load_guard: &LoadGuard<'_>, builder: SnapshotBuilder) {
        let _applied_guard = self.applied.lock();
        let slot = load_guard.slot;
        let (mut objects, bytes) = builder.finish();
        let forgotten = std::mem::take(&mut *slot.uncached.lock()).forget_all();
        self.unreadable.fetch_add(objects.unreadable().count(), Ordering::Relaxed);
        self.unreadable.fetch_sub(forgotten, Ordering::Relaxed);
        slot.bytes.store(bytes, Ordering::Relaxed);
        let buffered = slot.buffered_events.lock().take().unwrap_or_default();
        let difference = buffered.iter().map(|event| self.apply_one(&mut objects, event)).sum();
        self.add_bytes(slot, difference);
        let unchanged_since = buffered.last().map_or(load_guard.changed, |event| event.revision());
        slot.state.store(Some(Arc::new(Loaded { objects: Arc::new(objects), unchanged_since })));
        if self.budget.is_over() {
            self.shrink();
        }
    }

    /// Returns the snapshot that was read for a caller, with the state at the revision of `read_point`.
    pub(crate) fn snapshot_of(
        &self,
        slot: &Slot,
        read_point: &ReadPoint,
        builder: SnapshotBuilder,
    ) -> Snapshot {
        self.note_unreadable(slot, read_point.revision, &builder.unreadable);
        let (objects, _) = builder.finish();
        Snapshot::new(slot.resource.clone(), Arc::new(objects), read_point.changed, read_point.revision)
    }

    /// Returns the current revision and last change of an uncached resource, for a read that starts now.
    pub(crate) fn begin_read(&self, slot: &Slot) -> ReadPoint {
        let applied = self.applied.lock();
        ReadPoint { revision: *applied, changed: slot.changed.load(Ordering::Acquire) }
    }

    /// Starts to count the objects of an uncached resource in a namespace (empty for all), at this revision or the current one.
    /// `None` if the count would not be stored.
    pub(crate) fn begin_count<'a>(
        &self,
        slot: &'a Slot,
        namespace: &'a str,
        revision: Option<i64>,
    ) -> Option<PendingCount<'a>> {
        let applied = self.applied.lock();
        let revision = revision.unwrap_or(*applied);
        let is_unchanged = slot.changed.load(Ordering::Acquire) <= revision && revision <= *applied;
        if !is_unchanged || slot.state.load().is_some() {
            return None;
        }
        Some(PendingCount::new(slot, namespace, revision))
    }

    /// Records that all commits up to a revision are applied: the revision advances without an event.
    pub(crate) fn set_applied(&self, revision: i64) {
        *self.applied.lock() = revision;
    }

    /// Applies a committed group: each resource gets one new snapshot. Called by the writer only.
    pub(crate) fn apply(&self, events: &[Arc<Event>]) {
        let mut applied = self.applied.lock();
        let mut changed: Vec<(Arc<Slot>, Loaded, Objects, i64)> = Vec::new();
        for event in events {
            let resource = event.record.key.resource();
            let index = match changed.iter().position(|(slot, ..)| slot.resource == *resource) {
                Some(index) => index,
                None => {
                    let slot = self.slot(resource);
                    let Some(loaded) = slot.state.load_full() else {
                        self.apply_uncached(&slot, event);
                        continue;
                    };
                    changed.push((slot, (*loaded).clone(), (*loaded.objects).clone(), 0));
                    changed.len() - 1
                }
            };
            let (_, loaded, objects, difference) = &mut changed[index];
            loaded.unchanged_since = event.revision();
            *difference += self.apply_one(objects, event);
        }
        for (slot, loaded, objects, difference) in changed {
            let loaded = Loaded { objects: Arc::new(objects), ..loaded };
            slot.state.store(Some(Arc::new(loaded)));
            self.add_bytes(&slot, difference);
        }
        *applied = events.last().map_or(*applied, |event| event.revision());
        if self.budget.is_over() {
            self.shrink();
        }
    }

    /// Applies a change of an uncached resource.
    fn apply_uncached(&self, slot: &Slot, event: &Arc<Event>) {
        slot.changed.store(event.revision(), Ordering::Release);
        slot.buffered_events.lock().iter_mut().for_each(|buffer| buffer.push(event.clone()));
        let (removed, added) = slot.uncached.lock().apply(event);
        self.unreadable.fetch_add(added, Ordering::Relaxed);
        self.unreadable.fetch_sub(removed, Ordering::Relaxed);
    }

    /// Applies an event. Returns the change of the weight of the objects in bytes.
    fn apply_one(&self, objects: &mut Objects, event: &Event) -> i64 {
        let (previous, added_weight) = match (event.event_type, &event.unreadable) {
            (EventType::Deleted, _) => (objects.remove(event.record.key.path()), 0),
            (_, Some(object)) => {
                let previous = objects.remove(event.record.key.path());
                if objects.insert_unreadable((**object).clone()) {
                    self.unreadable.fetch_add(1, Ordering::Relaxed);
                }
                return -previous.map_or(0, |record| weight(&record));
            }
            (EventType::Added | EventType::Modified, None) => {
                (objects.insert(event.record.clone()), weight(&event.record))
            }
        };
        if objects.remove_unreadable(event.record.key.path()) {
            self.unreadable.fetch_sub(1, Ordering::Relaxed);
        }
        added_weight - previous.map_or(0, |record| weight(&record))
    }

    fn add_bytes(&self, slot: &Slot, bytes: i64) {
        slot.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.budget.add(bytes);
    }
}
