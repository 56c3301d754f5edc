//! Store wrapper with which tests run code between the decision on a write and its commit.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use portico_store::{
    ArchiveAt, Committed, Condition, CopySource, Found, Identity, Key, ListAt, Page, PastQuery, PastStates,
    Record, ResealedPast, Resource, ResourceFilter, Scope, SealedOtherwise, Snapshot, State, Store,
    StoreError, Subscription, Txn, TxnError, Unreadable, WatchError,
};
use tokio::sync::watch;

/// Function that receives each transaction before its commit; the returned future runs first.
pub type Hook = Box<dyn FnMut(&Txn) -> Option<BoxFuture<'static, ()>> + Send>;

/// Wrapper around a store that can run hooks and simulate failures.
pub struct Interposed {
    store: Arc<dyn Store>,
    hook: std::sync::Mutex<Option<Hook>>,
    reads: std::sync::Mutex<Vec<Option<usize>>>,
    /// Number of snapshots that fail before one succeeds.
    failures: AtomicUsize,
    /// Old states that [`Store::cached`] returns until [`Store::snapshot`] is called.
    behind: std::sync::Mutex<HashMap<Resource, Snapshot>>,
    /// Resource that [`Store::cached`] does not return.
    uncached: std::sync::Mutex<Option<Resource>>,
    /// Resource that is reported as incomplete.
    incomplete: std::sync::Mutex<Option<Resource>>,
}

impl Interposed {
    pub fn new(store: Arc<dyn Store>) -> Self {
        let (hook, reads) = (std::sync::Mutex::default(), std::sync::Mutex::default());
        let (behind, uncached, incomplete) = Default::default();
        Self { store, hook, reads, failures: AtomicUsize::new(0), behind, uncached, incomplete }
    }

    /// Reports that states of this resource are missing; `None` for none.
    pub fn report_missing(&self, resource: Option<Resource>) {
        *self.incomplete.lock().unwrap() = resource;
    }

    /// Runs the hook before every commit from now on, except for commits that the hook causes.
    pub fn before_commits(&self, hook: Hook) {
        *self.hook.lock().unwrap() = Some(hook);
    }

    /// Makes [`Store::cached`] return the current state of a resource from now on, as if another process made all later writes,
    /// until [`Store::snapshot`] is called.
    pub fn stay_behind(&self, state: Snapshot) {
        self.behind.lock().unwrap().insert(state.resource().clone(), state);
    }

    /// Hides a resource from [`Store::cached`] from now on.
    pub fn uncache(&self, resource: Resource) {
        *self.uncached.lock().unwrap() = Some(resource);
    }

    /// Makes the next `times` snapshots fail.
    pub fn fail_snapshots(&self, times: usize) {
        self.failures.store(times, Ordering::SeqCst);
    }

    /// Number of snapshots that will still fail.
    pub fn failures_left(&self) -> usize {
        self.failures.load(Ordering::SeqCst)
    }

    /// Limits of the exact reads since the last call, including those of past states.
    pub fn exact_reads(&self) -> Vec<Option<usize>> {
        std::mem::take(&mut *self.reads.lock().unwrap())
    }
}

impl Store for Interposed {
    fn commit(&self, txns: Vec<Txn>) -> BoxFuture<'_, Vec<Result<Committed, TxnError>>> {
        Box::pin(async move {
            let hook = self.hook.lock().unwrap().take();
            if let Some(mut hook) = hook {
                for happening in txns.iter().filter_map(&mut hook).collect::<Vec<_>>() {
                    happening.await;
                }
                *self.hook.lock().unwrap() = Some(hook);
            }
            self.store.commit(txns).await
        })
    }

    fn identity(&self) -> &Identity {
        self.store.identity()
    }

    fn snapshot<'a>(&'a self, resource: &'a Resource) -> BoxFuture<'a, Result<Snapshot, StoreError>> {
        self.behind.lock().unwrap().clear();
        let less = |left: usize| left.checked_sub(1);
        match self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) {
            Ok(_) => Box::pin(std::future::ready(Err(StoreError::Unavailable("it is away".to_owned())))),
            Err(_) => self.store.snapshot(resource),
        }
    }

    fn state<'a>(&'a self, resource: &'a Resource) -> BoxFuture<'a, Result<State, StoreError>> {
        self.store.state(resource)
    }

    fn find<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Found, StoreError>> {
        self.store.find(key)
    }

    fn damaged_keys<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Vec<Unreadable>, StoreError>> {
        self.store.damaged_keys(resource)
    }

    fn keep(&self, resource: &Resource) {
        self.store.keep(resource);
    }

    fn current(&self, resource: &Resource) -> Option<Snapshot> {
        if self.behind.lock().unwrap().is_empty() { self.store.current(resource) } else { None }
    }

    fn cached(&self, resource: &Resource) -> Option<Snapshot> {
        if self.uncached.lock().unwrap().as_ref() == Some(resource) {
            return None;
        }
        let behind = self.behind.lock().unwrap().get(resource).cloned();
        behind.or_else(|| self.store.cached(resource))
    }

    fn list_at(&self, query: ListAt) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.reads.lock().unwrap().push(query.limit);
        self.store.list_at(query)
    }

    fn get_at<'a>(
        &'a self,
        key: &'a Key,
        revision: i64,
    ) -> BoxFuture<'a, Result<Option<Arc<Record>>, StoreError>> {
        self.store.get_at(key, revision)
    }

    fn list_past(&self, query: ListAt) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.reads.lock().unwrap().push(query.limit);
        self.store.list_past(query)
    }

    fn past(&self, query: PastQuery) -> BoxFuture<'_, Result<PastStates, StoreError>> {
        self.store.past(query)
    }

    fn watch(&self, scope: Scope, from: i64) -> Result<Subscription, WatchError> {
        self.store.watch(scope, from)
    }

    fn follow(&self, filter: ResourceFilter, from: i64) -> Result<Subscription, WatchError> {
        self.store.follow(filter, from)
    }

    fn revision(&self) -> i64 {
        self.store.revision()
    }

    fn revisions(&self) -> watch::Receiver<i64> {
        self.store.revisions()
    }

    fn latest_revision(&self) -> BoxFuture<'_, Result<i64, StoreError>> {
        self.store.latest_revision()
    }

    fn wait_for(&self, revision: i64) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.wait_for(revision)
    }

    fn revision_at(&self, time: i64) -> BoxFuture<'_, Result<i64, StoreError>> {
        self.store.revision_at(time)
    }

    fn compacted(&self) -> i64 {
        self.store.compacted()
    }

    fn compact(&self, revision: i64) -> BoxFuture<'_, Result<i64, StoreError>> {
        self.store.compact(revision)
    }

    fn dependents<'a>(&'a self, owner_uid: &'a str) -> BoxFuture<'a, Result<Vec<Key>, StoreError>> {
        self.store.dependents(owner_uid)
    }

    fn owners(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        self.store.owners()
    }

    fn deleting(&self) -> BoxFuture<'_, Result<Vec<Key>, StoreError>> {
        self.store.deleting()
    }

    fn resources_in<'a>(&'a self, namespace: &'a str) -> BoxFuture<'a, Result<Vec<Resource>, StoreError>> {
        self.store.resources_in(namespace)
    }

    fn counts(&self) -> BoxFuture<'_, Result<Vec<(Resource, u64)>, StoreError>> {
        self.store.counts()
    }

    fn average_sizes(&self) -> BoxFuture<'_, Result<Vec<(Resource, u64)>, StoreError>> {
        self.store.average_sizes()
    }

    fn has_seal_rules(&self) -> bool {
        self.store.has_seal_rules()
    }

    fn sealed_resources(&self) -> Vec<Resource> {
        self.store.sealed_resources()
    }

    fn is_sealed_otherwise<'a>(
        &'a self,
        key: &'a Key,
        revision: i64,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.store.is_sealed_otherwise(key, revision)
    }

    fn sealed_otherwise<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<SealedOtherwise, StoreError>> {
        self.store.sealed_otherwise(resource)
    }

    fn reseal_past(&self, until: i64, behind: ArchiveAt) -> BoxFuture<'_, Result<ResealedPast, StoreError>> {
        self.store.reseal_past(until, behind)
    }

    fn copy_source(&self) -> Arc<dyn CopySource> {
        self.store.copy_source()
    }

    fn why_incomplete(&self, resource: &Resource) -> Option<String> {
        let is_incomplete = self.incomplete.lock().unwrap().as_ref() == Some(resource);
        is_incomplete.then(|| "states are missing".to_owned())
    }

    fn condition(&self) -> Condition {
        self.store.condition()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.store.close()
    }
}
