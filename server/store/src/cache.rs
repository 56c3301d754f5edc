//! The current state of every loaded resource, published as immutable snapshots: readers never block the writer.
//!
//! Where this process alone writes, a write is queued only after its resources are loaded, so nothing of a resource changes
//! while it is being loaded. Where others write, too, what is applied meanwhile waits beside it ([`Cache::begin_load`]).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use arc_swap::ArcSwapOption;
use parking_lot::{Mutex, RwLock};

use crate::event::{Event, EventType};
use crate::key::{Key, Resource};
use crate::record::Record;
use crate::snapshot::{Objects, Snapshot};
use crate::unreadable::Unreadable;

/// All resources that were ever written or asked for.
#[derive(Default)]
pub(crate) struct Cache {
    slots: RwLock<HashMap<Resource, Arc<Slot>>>,
    next_id: AtomicI64,
    bytes: AtomicI64,
    /// How many objects cannot be read.
    unreadable: AtomicUsize,
    /// Everything up to here is applied. Held while a group is.
    applied: Mutex<i64>,
}

/// One resource.
pub(crate) struct Slot {
    /// Its number in the database.
    pub(crate) id: i64,
    /// Whether the database knows the number.
    pub(crate) stored: AtomicBool,
    pub(crate) resource: Resource,
    /// Held while loading, so that one caller loads and the others wait.
    pub(crate) loading: tokio::sync::Mutex<()>,
    /// What was applied since [`Cache::begin_load`]; nothing at other times.
    arrived: Mutex<Option<Vec<Arc<Event>>>>,
    state: ArcSwapOption<Loaded>,
}

/// A resource is being loaded. Dropped, it is not any more.
pub(crate) struct Loading<'a> {
    slot: &'a Slot,
    /// The state of this revision is to be read.
    pub(crate) revision: i64,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        *self.slot.arrived.lock() = None;
    }
}

#[derive(Clone)]
struct Loaded {
    objects: Arc<Objects>,
    /// The objects are the state at every revision from here to the current one.
    changed: i64,
}

impl Cache {
    /// A resource that the database knows by this number.
    pub(crate) fn stored(&self, id: i64, resource: Resource) {
        self.reserve(id);
        let slot = Arc::new(Slot::new(id, true, resource.clone()));
        self.slots.write().insert(resource, slot);
    }

    /// A number that the database knows and that no new resource may get.
    pub(crate) fn reserve(&self, id: i64) {
        self.next_id.fetch_max(id, Ordering::Relaxed);
    }

    /// The slot of a resource, made if it is new.
    pub(crate) fn slot(&self, resource: &Resource) -> Arc<Slot> {
        if let Some(slot) = self.slots.read().get(resource) {
            return slot.clone();
        }
        let mut slots = self.slots.write();
        let made = slots.entry(resource.clone()).or_insert_with(|| {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
            Arc::new(Slot::new(id, false, resource.clone()))
        });
        made.clone()
    }

    /// The slot that has this number in the database.
    pub(crate) fn by_id(&self, id: i64) -> Option<Arc<Slot>> {
        self.slots.read().values().find(|slot| slot.id == id).cloned()
    }

    /// All slots.
    pub(crate) fn slots(&self) -> Vec<Arc<Slot>> {
        self.slots.read().values().cloned().collect()
    }

    /// The keys of the objects in memory that may be being deleted, and the slots of resources that are not loaded.
    pub(crate) fn deleting(&self, current: i64) -> (Vec<Key>, Vec<Arc<Slot>>) {
        let (mut keys, mut unread) = (Vec::new(), Vec::new());
        for slot in self.slots() {
            match slot.snapshot(current) {
                Some(snapshot) => {
                    let found = snapshot.iter().filter(|record| record.may_be_deleting());
                    keys.extend(found.map(|record| record.key.clone()));
                }
                None => unread.push(slot),
            }
        }
        (keys, unread)
    }

    /// All resources that the database knows, by number.
    pub(crate) fn resources(&self) -> HashMap<i64, Resource> {
        self.slots.read().values().map(|slot| (slot.id, slot.resource.clone())).collect()
    }

    /// An object's current state, whether it can be read or not; None also when its resource is not loaded.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Record>> {
        let slots = self.slots.read();
        let state = slots.get(key.resource())?.state.load();
        let objects = &state.as_ref()?.objects;
        let unreadable = || objects.get_unreadable(key.path()).map(|object| object.record.clone());
        objects.get(key.path()).cloned().or_else(unreadable)
    }

    /// The objects that cannot be read, of the resources that are loaded; in key order.
    pub(crate) fn unreadable(&self) -> Vec<Unreadable> {
        if self.unreadable.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let loaded = self.slots().into_iter().filter_map(|slot| slot.state.load_full());
        let mut all: Vec<_> =
            loaded.flat_map(|loaded| loaded.objects.unreadable().cloned().collect::<Vec<_>>()).collect();
        all.sort_by(|a, b| a.key().cmp(b.key()));
        all
    }

    /// How many objects of a resource cannot be read; none when it is not loaded.
    pub(crate) fn unreadable_of(&self, resource: &Resource) -> Option<usize> {
        let loaded = self.slots.read().get(resource)?.state.load_full()?;
        Some(loaded.objects.unreadable().count())
    }

    /// Shows what could not be read and can be now, where it is still what was read.
    pub(crate) fn heal(&self, record: Arc<Record>) {
        let _nothing_is_applied = self.applied.lock();
        let slot = self.slot(record.key.resource());
        let Some(loaded) = slot.state.load_full() else { return };
        let known = loaded.objects.get_unreadable(record.key.path());
        if known.is_none_or(|object| object.revision() != record.revision) {
            return;
        }
        let mut objects = (*loaded.objects).clone();
        objects.remove_unreadable(record.key.path());
        self.unreadable.fetch_sub(1, Ordering::Relaxed);
        self.add_bytes(weight(&record));
        objects.insert(record);
        slot.state.store(Some(Arc::new(Loaded { objects: Arc::new(objects), changed: loaded.changed })));
    }

    /// Publishes what the database holds of a resource; `records` are in key order.
    pub(crate) fn load(
        &self,
        slot: &Slot,
        records: &[Arc<Record>],
        unreadable: Vec<Unreadable>,
        revision: i64,
    ) {
        self.add_bytes(records.iter().map(|record| weight(record)).sum());
        self.unreadable.fetch_add(unreadable.len(), Ordering::Relaxed);
        let objects = Arc::new(Objects::from_sorted(records, unreadable));
        slot.state.store(Some(Arc::new(Loaded { objects, changed: revision })));
    }

    /// Begins to load a resource: what is applied from now on waits until it is there.
    pub(crate) fn begin_load<'a>(&self, slot: &'a Slot) -> Loading<'a> {
        let applied = self.applied.lock();
        *slot.arrived.lock() = Some(Vec::new());
        Loading { slot, revision: *applied }
    }

    /// Publishes what the database held of a resource at the revision of `loading`, with what has come since.
    pub(crate) fn end_load(
        &self,
        loading: &Loading<'_>,
        records: &[Arc<Record>],
        unreadable: Vec<Unreadable>,
    ) {
        let _nothing_is_applied = self.applied.lock();
        let slot = loading.slot;
        self.load(slot, records, unreadable, loading.revision);
        let arrived = slot.arrived.lock().take().unwrap_or_default();
        if let (Some(last), Some(loaded)) = (arrived.last(), slot.state.load_full()) {
            let mut objects = (*loaded.objects).clone();
            arrived.iter().for_each(|event| self.apply_one(&mut objects, event));
            let loaded = Loaded { objects: Arc::new(objects), changed: last.revision() };
            slot.state.store(Some(Arc::new(loaded)));
        }
    }

    /// Everything up to here is applied: when the store is opened, and when the revision moves without an event.
    pub(crate) fn applied_up_to(&self, revision: i64) {
        *self.applied.lock() = revision;
    }

    /// Applies a committed group: each resource gets one new snapshot. The writer alone calls this.
    pub(crate) fn apply(&self, events: &[Arc<Event>]) {
        let mut applied = self.applied.lock();
        let mut changed: Vec<(Arc<Slot>, Loaded, Objects)> = Vec::new();
        for event in events {
            let resource = event.record.key.resource();
            let index = match changed.iter().position(|(slot, ..)| slot.resource == *resource) {
                Some(index) => index,
                None => {
                    let slot = self.slot(resource);
                    let Some(loaded) = slot.state.load_full() else {
                        slot.arrived.lock().iter_mut().for_each(|waiting| waiting.push(event.clone()));
                        continue;
                    };
                    changed.push((slot, (*loaded).clone(), (*loaded.objects).clone()));
                    changed.len() - 1
                }
            };
            let (_, loaded, objects) = &mut changed[index];
            loaded.changed = event.revision();
            self.apply_one(objects, event);
        }
        for (slot, loaded, objects) in changed {
            let loaded = Loaded { objects: Arc::new(objects), ..loaded };
            slot.state.store(Some(Arc::new(loaded)));
        }
        *applied = events.last().map_or(*applied, |event| event.revision());
    }

    fn apply_one(&self, objects: &mut Objects, event: &Event) {
        let before = match (event.event_type, &event.unreadable) {
            (EventType::Deleted, _) => objects.remove(event.record.key.path()),
            (_, Some(object)) => {
                let before = objects.remove(event.record.key.path());
                self.add_bytes(-before.map_or(0, |record| weight(&record)));
                if objects.insert_unreadable((**object).clone()) {
                    self.unreadable.fetch_add(1, Ordering::Relaxed);
                }
                return;
            }
            (EventType::Added | EventType::Modified, None) => {
                self.add_bytes(weight(&event.record));
                objects.insert(event.record.clone())
            }
        };
        self.add_bytes(-before.map_or(0, |record| weight(&record)));
        if objects.remove_unreadable(event.record.key.path()) {
            self.unreadable.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn add_bytes(&self, bytes: i64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// About how much memory the current state takes.
    pub(crate) fn bytes(&self) -> i64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Slot {
    fn new(id: i64, stored: bool, resource: Resource) -> Self {
        let (stored, loading) = (AtomicBool::new(stored), tokio::sync::Mutex::default());
        Self { id, stored, resource, loading, arrived: Mutex::default(), state: ArcSwapOption::empty() }
    }

    pub(crate) fn is_loaded(&self) -> bool {
        self.state.load().is_some()
    }

    /// The current state, if loaded. `current` is the store's revision, read before this call.
    pub(crate) fn snapshot(&self, current: i64) -> Option<Snapshot> {
        let loaded = self.state.load();
        let loaded = loaded.as_ref()?;
        Some(Snapshot::new(self.resource.clone(), loaded.objects.clone(), loaded.changed, current))
    }
}

fn weight(record: &Record) -> i64 {
    i64::try_from(record.weight()).unwrap_or(i64::MAX)
}
