//! Store wrapper with which tests run code between the decision on a write and its commit.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use portico_store::{
    ArchiveCursor, CommittedTxn, CopySource, CurrentState, Identity, Key, ListAt, ObjectLookup, Page,
    PastQuery, PastStates, Record, ResealProgress, Resource, ResourceFilter, Scope, Snapshot, StaleSeals,
    Store, StoreCondition, StoreError, Subscription, Txn, TxnError, Unreadable, WatchError,
};
use tokio::sync::watch;

/// Function that receives each transaction before its commit; the returned future runs first.
pub type Hook = Box<dyn FnMut(&Txn) -> Option<BoxFuture<'static, ()>> + Send>;

/// Wrapper around a store that can run hooks and simulate failures.
pub struct InterceptingStore {
    store: Arc<dyn Store>,
    hook: std::sync::Mutex<Option<Hook>>,
    reads: std::sync::Mutex<Vec<Option<usize>>>,
    /// Number of snapshots that fail before one succeeds.
    failures: AtomicUsize,
    /// Old states that [`Store::cached`] returns until [`Store::snapshot`] is called.
    stale: std::sync::Mutex<HashMap<Resource, Snapshot>>,
    /// Resource that [`Store::cached`] does not return.
    uncached: std::sync::Mutex<Option<Resource>>,
    /// Resource that is reported as incomplete.
    incomplete: std::sync::Mutex<Option<Resource>>,
}

impl InterceptingStore {
    pub fn new(store: Arc<dyn Store>) -> Self {
        let (hook, reads) = (std::sync::Mutex::default(), std::sync::Mutex::default());
        let (stale, uncached, incomplete) = Default::default();
        Self { store, hook, reads, failures: AtomicUsize::new(0), stale, uncached, incomplete }
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
    pub fn serve_stale(&self, state: Snapshot) {
        self.stale.lock().unwrap().insert(state.resource().clone(), state);
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

impl Store for InterceptingStore {
    fn commit(&self, txns: Vec<Txn>) -> BoxFuture<'_, Vec<Result<CommittedTxn, TxnError>>> {
        Box::pin(async move {
            let hook = self.hook.lock().unwrap().take();
            if let Some(mut hook) = hook {
                for concurrent_write in txns.iter().filter_map(&mut hook).collect::<Vec<_>>() {
                    concurrent_write.await;
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
        self.stale.lock().unwrap().clear();
        let decrement = |left: usize| left.checked_sub(1);
        match self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, decrement) {
            Ok(_) => {
                Box::pin(std::future::ready(Err(StoreError::Unavailable("failed by the test".to_owned()))))
            }
            Err(_) => self.store.snapshot(resource),
        }
    }

    fn current_state<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<CurrentState, StoreError>> {
        self.store.current_state(resource)
    }

    fn find<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<ObjectLookup, StoreError>> {
        self.store.find(key)
    }

    fn damaged_keys<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Vec<Unreadable>, StoreError>> {
        self.store.damaged_keys(resource)
    }

    fn pin(&self, resource: &Resource) {
        self.store.pin(resource);
    }

    fn try_snapshot(&self, resource: &Resource) -> Option<Snapshot> {
        if self.stale.lock().unwrap().is_empty() { self.store.try_snapshot(resource) } else { None }
    }

    fn cached_snapshot(&self, resource: &Resource) -> Option<Snapshot> {
        if self.uncached.lock().unwrap().as_ref() == Some(resource) {
            return None;
        }
        let stale_snapshot = self.stale.lock().unwrap().get(resource).cloned();
        stale_snapshot.or_else(|| self.store.cached_snapshot(resource))
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

    fn past_states(&self, query: PastQuery) -> BoxFuture<'_, Result<PastStates, StoreError>> {
        self.store.past_states(query)
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

    fn wait_for_revision(&self, revision: i64) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.wait_for_revision(revision)
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

    fn owner_uids(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        self.store.owner_uids()
    }

    fn terminating_keys(&self) -> BoxFuture<'_, Result<Vec<Key>, StoreError>> {
        self.store.terminating_keys()
    }

    fn resources_in<'a>(&'a self, namespace: &'a str) -> BoxFuture<'a, Result<Vec<Resource>, StoreError>> {
        self.store.resources_in(namespace)
    }

    fn object_counts(&self) -> BoxFuture<'_, Result<Vec<(Resource, u64)>, StoreError>> {
        self.store.object_counts()
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

    fn has_stale_seal<'a>(&'a self, key: &'a Key, revision: i64) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.store.has_stale_seal(key, revision)
    }

    fn stale_seals<'a>(&'a self, resource: &'a Resource) -> BoxFuture<'a, Result<StaleSeals, StoreError>> {
        self.store.stale_seals(resource)
    }

    fn reseal_past_states(
        &self,
        until: i64,
        behind: ArchiveCursor,
    ) -> BoxFuture<'_, Result<ResealProgress, StoreError>> {
        self.store.reseal_past_states(until, behind)
    }

    fn copy_source(&self) -> Arc<dyn CopySource> {
        self.store.copy_source()
    }

    fn incomplete_reason(&self, resource: &Resource) -> Option<String> {
        let is_incomplete = self.incomplete.lock().unwrap().as_ref() == Some(resource);
        is_incomplete.then(|| "states are missing".to_owned())
    }

    fn condition(&self) -> StoreCondition {
        self.store.condition()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.store.close()
    }
}
