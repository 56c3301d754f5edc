//! Current state of every loaded resource, published as immutable snapshots: readers never block the writer.
//!
//! Changes that are applied while a resource is loaded are buffered ([`Cache::begin_load`]). The cache has a size limit:
//! `budget` counts the bytes, `eviction` selects the resources that stay, and `snapshot_builder` stops a load that does not
//! fit. `slot` is one resource, `uncached` the known facts about a resource that is not cached, `counts` its number of objects.

mod budget;
mod counting;
mod counts;
mod intake;
mod room;
mod slot;
mod unheld;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

pub(crate) use self::budget::Budget;
pub(crate) use self::counting::Counting;
use self::intake::weight;
pub(crate) use self::intake::{Intake, average_weight};
use self::slot::Loaded;
pub(crate) use self::slot::Slot;
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
pub(crate) struct Begun {
    /// Revision to read.
    pub(crate) revision: i64,
    /// Revision of the last change of the resource.
    changed: i64,
}

/// Guard of a running load of a resource. Dropping it ends the load.
pub(crate) struct Loading<'a> {
    slot: &'a Slot,
    /// Revision to read.
    pub(crate) revision: i64,
    changed: i64,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        *self.slot.arrived.lock() = None;
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
    pub(crate) fn stored(&self, id: i64, resource: Resource) {
        self.reserve(id);
        let slot = Arc::new(Slot::new(id, true, resource.clone(), self.opened_at));
        self.slots.write().insert(resource, slot);
    }

    /// Reserves an ID that the database uses, so that no new resource gets it.
    pub(crate) fn reserve(&self, id: i64) {
        self.next_id.fetch_max(id, Ordering::Relaxed);
    }

    /// Returns the slot of a resource, and creates it if needed.
    pub(crate) fn slot(&self, resource: &Resource) -> Arc<Slot> {
        if let Some(slot) = self.slots.read().get(resource) {
            return slot.clone();
        }
        let mut slots = self.slots.write();
        let made = slots.entry(resource.clone()).or_insert_with(|| {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
            Arc::new(Slot::new(id, self.is_shared, resource.clone(), self.opened_at))
        });
        made.clone()
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
    pub(crate) fn deleting(&self) -> (Vec<Key>, Vec<Arc<Slot>>) {
        let (mut keys, mut unread) = (Vec::new(), Vec::new());
        for slot in self.slots() {
            match slot.objects() {
                Some(objects) => {
                    let found = objects.iter().filter(|record| record.may_be_deleting());
                    keys.extend(found.map(|record| record.key.clone()));
                }
                None => unread.push(slot),
            }
        }
        (keys, unread)
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
    pub(crate) fn will_hold(&self, resource: &Resource, event_type: EventType) -> bool {
        event_type != EventType::Deleted && self.objects(resource).is_some()
    }

    /// Keeps the resource in the cache once it is loaded, regardless of the budget.
    pub(crate) fn keep(&self, resource: &Resource) {
        self.slot(resource).is_kept.store(true, Ordering::Relaxed);
    }

    /// Returns the known unreadable objects in key order: all those of cached resources, and those of other resources
    /// that reads have found.
    pub(crate) fn unreadable(&self) -> Vec<Unreadable> {
        if self.unreadable.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let mut all = Vec::new();
        for slot in self.slots() {
            match slot.objects() {
                Some(objects) => all.extend(objects.unreadable().cloned()),
                None => all.extend_from_slice(slot.unheld.lock().unreadable()),
            }
        }
        all.sort_by(|a, b| a.key().cmp(b.key()));
        all
    }

    /// Returns the number of known unreadable objects of a resource; `None` if the resource has no slot.
    pub(crate) fn unreadable_of(&self, resource: &Resource) -> Option<usize> {
        let slot = self.slots.read().get(resource)?.clone();
        let of_unheld = || slot.unheld.lock().unreadable().len();
        Some(slot.objects().map_or_else(of_unheld, |objects| objects.unreadable().count()))
    }

    /// Records the unreadable objects that a read of an uncached resource found at a revision.
    pub(crate) fn note_unreadable(&self, slot: &Slot, revision: i64, met: &[Unreadable]) {
        if met.is_empty() {
            return;
        }
        let _nothing_is_applied = self.applied.lock();
        if slot.state.load().is_none() && slot.changed.load(Ordering::Acquire) <= revision {
            let new = slot.unheld.lock().note(met);
            self.unreadable.fetch_add(new, Ordering::Relaxed);
        }
    }

    /// Publishes an object that was unreadable and can be read now, unless it has changed since.
    pub(crate) fn heal(&self, record: Arc<Record>) {
        let _nothing_is_applied = self.applied.lock();
        let slot = self.slot(record.key.resource());
        let Some(loaded) = slot.state.load_full() else {
            let gone = slot.unheld.lock().forget(record.key.path());
            self.unreadable.fetch_sub(gone, Ordering::Relaxed);
            return;
        };
        let known = loaded.objects.get_unreadable(record.key.path());
        if known.is_none_or(|object| object.revision() != record.revision) {
            return;
        }
        let mut objects = (*loaded.objects).clone();
        objects.remove_unreadable(record.key.path());
        self.unreadable.fetch_sub(1, Ordering::Relaxed);
        self.weighs_more(&slot, weight(&record));
        objects.insert(record);
        slot.state.store(Some(Arc::new(Loaded { objects: Arc::new(objects), changed: loaded.changed })));
    }

    /// Returns the builder for a load of a resource. It stops when the budget is used up, unless the resource is pinned.
    pub(crate) fn intake(&self, slot: &Slot) -> Intake {
        let is_kept = slot.is_kept.load(Ordering::Relaxed);
        Intake::new(Some((self.budget.clone(), !is_kept)))
    }

    /// Returns a builder without a budget, for a snapshot that one caller owns.
    pub(crate) fn intake_for_caller(&self) -> Intake {
        Intake::new(None)
    }

    /// Starts a load of a resource: changes that are applied from now on are buffered until the load ends.
    pub(crate) fn begin_load<'a>(&self, slot: &'a Slot) -> Loading<'a> {
        let applied = self.applied.lock();
        *slot.arrived.lock() = Some(Vec::new());
        Loading { slot, revision: *applied, changed: slot.changed.load(Ordering::Acquire) }
    }

    /// Publishes the loaded objects of a resource at the revision of `loading`, with the changes since.
    pub(crate) fn end_load(&self, loading: &Loading<'_>, intake: Intake) {
        let _nothing_is_applied = self.applied.lock();
        let slot = loading.slot;
        let (mut objects, bytes) = intake.finish();
        let forgotten = std::mem::take(&mut *slot.unheld.lock()).forget_all();
        self.unreadable.fetch_add(objects.unreadable().count(), Ordering::Relaxed);
        self.unreadable.fetch_sub(forgotten, Ordering::Relaxed);
        slot.bytes.store(bytes, Ordering::Relaxed);
        let arrived = slot.arrived.lock().take().unwrap_or_default();
        let more = arrived.iter().map(|event| self.apply_one(&mut objects, event)).sum();
        self.weighs_more(slot, more);
        let changed = arrived.last().map_or(loading.changed, |event| event.revision());
        slot.state.store(Some(Arc::new(Loaded { objects: Arc::new(objects), changed })));
        if self.budget.is_over() {
            self.shrink();
        }
    }

    /// Returns the snapshot that was read for a caller, with the state at the revision of `begun`.
    pub(crate) fn snapshot_of(&self, slot: &Slot, begun: &Begun, intake: Intake) -> Snapshot {
        self.note_unreadable(slot, begun.revision, &intake.unreadable);
        let (objects, _) = intake.finish();
        Snapshot::new(slot.resource.clone(), Arc::new(objects), begun.changed, begun.revision)
    }

    /// Returns the current revision and last change of an uncached resource, for a read that starts now.
    pub(crate) fn begin_read(&self, slot: &Slot) -> Begun {
        let applied = self.applied.lock();
        Begun { revision: *applied, changed: slot.changed.load(Ordering::Acquire) }
    }

    /// Starts to count the objects of an uncached resource in a namespace (empty for all), at this revision or the current one.
    /// `None` if the count would not be stored.
    pub(crate) fn begin_count<'a>(
        &self,
        slot: &'a Slot,
        namespace: &'a str,
        revision: Option<i64>,
    ) -> Option<Counting<'a>> {
        let applied = self.applied.lock();
        let revision = revision.unwrap_or(*applied);
        let is_unchanged = slot.changed.load(Ordering::Acquire) <= revision && revision <= *applied;
        if !is_unchanged || slot.state.load().is_some() {
            return None;
        }
        Some(Counting::new(slot, namespace, revision))
    }

    /// Records that everything up to here is applied: the revision advances without an event.
    pub(crate) fn applied_up_to(&self, revision: i64) {
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
                        self.pass(&slot, event);
                        continue;
                    };
                    changed.push((slot, (*loaded).clone(), (*loaded.objects).clone(), 0));
                    changed.len() - 1
                }
            };
            let (_, loaded, objects, more) = &mut changed[index];
            loaded.changed = event.revision();
            *more += self.apply_one(objects, event);
        }
        for (slot, loaded, objects, more) in changed {
            let loaded = Loaded { objects: Arc::new(objects), ..loaded };
            slot.state.store(Some(Arc::new(loaded)));
            self.weighs_more(&slot, more);
        }
        *applied = events.last().map_or(*applied, |event| event.revision());
        if self.budget.is_over() {
            self.shrink();
        }
    }

    /// Applies a change of an uncached resource.
    fn pass(&self, slot: &Slot, event: &Arc<Event>) {
        slot.changed.store(event.revision(), Ordering::Release);
        slot.arrived.lock().iter_mut().for_each(|waiting| waiting.push(event.clone()));
        let (gone, come) = slot.unheld.lock().pass(event);
        self.unreadable.fetch_add(come, Ordering::Relaxed);
        self.unreadable.fetch_sub(gone, Ordering::Relaxed);
    }

    /// Applies an event. Returns the change of the weight of the objects in bytes.
    fn apply_one(&self, objects: &mut Objects, event: &Event) -> i64 {
        let (before, more) = match (event.event_type, &event.unreadable) {
            (EventType::Deleted, _) => (objects.remove(event.record.key.path()), 0),
            (_, Some(object)) => {
                let before = objects.remove(event.record.key.path());
                if objects.insert_unreadable((**object).clone()) {
                    self.unreadable.fetch_add(1, Ordering::Relaxed);
                }
                return -before.map_or(0, |record| weight(&record));
            }
            (EventType::Added | EventType::Modified, None) => {
                (objects.insert(event.record.clone()), weight(&event.record))
            }
        };
        if objects.remove_unreadable(event.record.key.path()) {
            self.unreadable.fetch_sub(1, Ordering::Relaxed);
        }
        more - before.map_or(0, |record| weight(&record))
    }

    fn weighs_more(&self, slot: &Slot, bytes: i64) {
        slot.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.budget.add(bytes);
    }
}
