//! What is made of the objects of a resource, once for each of their states: compiled policies, webhooks.
//!
//! Made when a request asks for it next, out of the store's snapshot: a policy is in force with the next request, also where another
//! process has written it, as the registry catches up with the store before it admits a request. It is generic over the derived type.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use portico_machinery::{GroupResource, Object};
use portico_registry::{Objects, Result, ServedResource, stored};
use portico_store::Snapshot;

/// What is made of each object of a resource, in order of their names.
pub(crate) struct Derived<T> {
    /// A built-in one.
    resource: GroupResource,
    served: OnceLock<Arc<ServedResource>>,
    make: Box<dyn Fn(&Object) -> T + Send + Sync>,
    made: ArcSwap<Made<T>>,
    /// Held by the one who makes.
    making: Mutex<()>,
}

struct Made<T> {
    /// The revision of the last change of the resource; nothing was read yet when it is negative.
    changed: i64,
    /// By name, and the revision of the object that it is made of.
    by_name: HashMap<Box<str>, (i64, Arc<T>)>,
    all: Arc<[Arc<T>]>,
}

impl<T> Derived<T> {
    /// Nothing made yet.
    pub(crate) fn new(
        group: &str,
        resource: &str,
        make: impl Fn(&Object) -> T + Send + Sync + 'static,
    ) -> Self {
        let none = Made { changed: -1, by_name: HashMap::new(), all: Arc::from([]) };
        let resource = GroupResource::new(group, resource);
        Self {
            resource,
            served: OnceLock::new(),
            make: Box::new(make),
            made: ArcSwap::from_pointee(none),
            making: Mutex::new(()),
        }
    }

    /// All that is made of the objects that there are now, if that is known without waiting.
    pub(crate) fn known(&self, objects: &Objects) -> Option<Arc<[Arc<T>]>> {
        Some(self.of(&objects.store.cached(&self.served(objects)?.storage)?))
    }

    /// All that is made of the objects that there are now; none where the resource is not served.
    pub(crate) async fn all(&self, objects: &Objects) -> Result<Arc<[Arc<T>]>> {
        if let Some(known) = self.known(objects) {
            return Ok(known);
        }
        let Some(served) = self.served(objects) else { return Ok(Arc::from([])) };
        Ok(self.of(&objects.snapshot(served).await?))
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

    fn of(&self, snapshot: &Snapshot) -> Arc<[Arc<T>]> {
        let made = self.made.load();
        if made.changed >= snapshot.changed() {
            return Arc::clone(&made.all);
        }
        let _making = self.making.lock();
        let before = self.made.load();
        if before.changed >= snapshot.changed() {
            return Arc::clone(&before.all);
        }
        let made = self.make(snapshot, &before);
        let all = Arc::clone(&made.all);
        self.made.store(Arc::new(made));
        all
    }

    /// Objects that have not changed keep what was made of them.
    fn make(&self, snapshot: &Snapshot, before: &Made<T>) -> Made<T> {
        let mut by_name = HashMap::with_capacity(snapshot.len());
        let mut all = Vec::with_capacity(snapshot.len());
        for record in snapshot.iter() {
            let name = record.key.name();
            let kept = before.by_name.get(name).filter(|(revision, _)| *revision == record.revision);
            let item = match kept {
                Some((_, item)) => Arc::clone(item),
                None => Arc::new((self.make)(&stored::decode(record))),
            };
            by_name.insert(name.into(), (record.revision, Arc::clone(&item)));
            all.push(item);
        }
        Made { changed: snapshot.changed(), by_name, all: all.into() }
    }
}
