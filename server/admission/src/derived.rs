//! What is made of the objects of a resource, once for each of their states: compiled policies, webhooks.
//!
//! Made when a request asks for it next, out of the store's snapshot: a policy is in force with the next request, also where another
//! process has written it, as the registry catches up with the store before it admits a request. It is generic over the derived type.
//!
//! An object that cannot be read stays in force as it was read last by this process. Without such a state the set is incomplete, and
//! it is if objects may be missing from the store.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use portico_machinery::{GroupResource, Object};
use portico_registry::{Objects, Result, ServedResource, stored};
use portico_store::{Record, Snapshot, Store, Unreadable};

use crate::listing;

/// What is made of each object of a resource, in order of their names.
pub(crate) struct Derived<T> {
    /// A built-in one.
    resource: GroupResource,
    served: OnceLock<Arc<ServedResource>>,
    make: Box<dyn Fn(&Object) -> T + Send + Sync>,
    made: ArcSwap<DerivedSet<T>>,
    /// Held by the one who makes.
    making: Mutex<()>,
}

/// All that was made of one state of a resource.
pub(crate) struct DerivedSet<T> {
    /// The revision of the last change of the resource; nothing was read yet when it is negative.
    changed: i64,
    by_name: BTreeMap<Box<str>, Source<T>>,
    all: Box<[Arc<T>]>,
    /// Objects that could not be read, in force or not.
    unreadable: Box<[Unreadable]>,
    /// Reason for which objects may be missing without the store naming them.
    missing: Option<String>,
    problem: Option<String>,
}

/// One item, and the state of the object that it is made of.
struct Source<T> {
    revision: i64,
    uid: Box<str>,
    item: Arc<T>,
}

impl<T> Source<T> {
    fn new(record: &Record, item: Arc<T>) -> Self {
        Self { revision: record.revision, uid: record.value.uid().into(), item }
    }

    /// True if the object that cannot be read is the same one in another state, as far as is known.
    fn is_of(&self, object: &Unreadable) -> bool {
        object.has_key() && (object.uid().is_empty() || *self.uid == *object.uid())
    }
}

impl<T> Clone for Source<T> {
    fn clone(&self) -> Self {
        Self { revision: self.revision, uid: self.uid.clone(), item: Arc::clone(&self.item) }
    }
}

impl<T> DerivedSet<T> {
    /// Returns the items in order of the objects' names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.all.iter()
    }

    /// Names the objects that cannot be read and have no earlier state in force, if there are any, or reports why some may be missing.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// True if this was made of the snapshot's state or a later one. Objects become readable without a change of the resource.
    fn covers(&self, snapshot: &Snapshot, missing: Option<&str>) -> bool {
        let is_same = || self.unreadable.iter().eq(snapshot.unreadable_in(None));
        let is_as_new =
            self.changed > snapshot.changed() || (self.changed == snapshot.changed() && is_same());
        is_as_new && self.missing.as_deref() == missing
    }
}

impl<T> Default for DerivedSet<T> {
    fn default() -> Self {
        let (by_name, all, unreadable) = Default::default();
        Self { changed: -1, by_name, all, unreadable, missing: None, problem: None }
    }
}

impl<T> Derived<T> {
    /// Nothing made yet.
    pub(crate) fn new(
        group: &str,
        resource: &str,
        make: impl Fn(&Object) -> T + Send + Sync + 'static,
    ) -> Self {
        let resource = GroupResource::new(group, resource);
        Self {
            resource,
            served: OnceLock::new(),
            make: Box::new(make),
            made: ArcSwap::from_pointee(DerivedSet::default()),
            making: Mutex::new(()),
        }
    }

    /// All that is made of the objects that there are now, if that is known without waiting.
    pub(crate) fn known(&self, objects: &Objects) -> Option<Arc<DerivedSet<T>>> {
        Some(self.of(&*objects.store, &objects.store.cached(&self.served(objects)?.storage)?))
    }

    /// All that is made of the objects that there are now; none where the resource is not served.
    pub(crate) async fn all(&self, objects: &Objects) -> Result<Arc<DerivedSet<T>>> {
        if let Some(known) = self.known(objects) {
            return Ok(known);
        }
        let Some(served) = self.served(objects) else { return Ok(self.made.load_full()) };
        Ok(self.of(&*objects.store, &objects.snapshot(served).await?))
    }

    /// Built-in resources are served as long as the process lives, or never: it is looked up once.
    fn served(&self, objects: &Objects) -> Option<&Arc<ServedResource>> {
        if self.served.get().is_none() {
            let served = objects.served(&self.resource).ok()?;
            // Each request looks into it.
            objects.store.keep(&served.storage);
            let _kept_by_the_first = self.served.set(served);
        }
        self.served.get()
    }

    fn of(&self, store: &dyn Store, snapshot: &Snapshot) -> Arc<DerivedSet<T>> {
        let missing = store.why_incomplete(snapshot.resource());
        let made = self.made.load_full();
        if made.covers(snapshot, missing.as_deref()) {
            return made;
        }
        let _making = self.making.lock();
        let before = self.made.load_full();
        if before.covers(snapshot, missing.as_deref()) {
            return before;
        }
        let made = Arc::new(self.make(snapshot, missing, &before));
        self.made.store(Arc::clone(&made));
        made
    }

    /// Keeps the items of objects that have not changed, or cannot be read.
    fn make(&self, snapshot: &Snapshot, missing: Option<String>, before: &DerivedSet<T>) -> DerivedSet<T> {
        let mut by_name = BTreeMap::new();
        for record in snapshot.iter() {
            let name = record.key.name();
            let kept = before.by_name.get(name).filter(|source| source.revision == record.revision);
            let source = match kept {
                Some(source) => source.clone(),
                None => Source::new(record, Arc::new((self.make)(&stored::decode(record)))),
            };
            by_name.insert(name.into(), source);
        }
        let unreadable: Box<[_]> = snapshot.unreadable_in(None).cloned().collect();
        let mut unknown = Vec::new();
        for object in &unreadable {
            let name = object.key().name();
            match before.by_name.get(name).filter(|source| source.is_of(object)) {
                Some(source) => drop(by_name.insert(name.into(), source.clone())),
                None => unknown.push(object),
            }
        }
        let problem = listing::problem(&self.resource, missing.as_deref(), unknown.into_iter());
        let all = by_name.values().map(|source| Arc::clone(&source.item)).collect();
        DerivedSet { changed: snapshot.changed(), by_name, all, unreadable, missing, problem }
    }
}
