//! Tests of a cache with a size limit: evictions and reloads are not visible to readers, writers and watchers.

use std::sync::Arc;
use std::time::Duration;

use portico_store::{Change, CurrentState, Key, ListAt, Precondition, Scope, Settings, Store, Txn, TxnError};

use crate::harness::*;

/// Number of objects, of about half a kilobyte each in memory.
const OBJECTS: usize = 20;
/// Cache size in bytes for one of two such resources.
const BUDGET: u64 = 14_000;

fn lease(n: usize) -> Key {
    Key::new(&leases(), "a", &n.to_string())
}

fn with_budget(idle_time: Duration) -> impl Fn(&mut Settings) + Sync {
    move |settings| (settings.cache_max_bytes, settings.cache_idle_time) = (Some(BUDGET), idle_time)
}

/// Writes two resources with the same number of objects and opens the store again, so that none is cached.
async fn open_two_resources(backend: &dyn Backend, idle_time: Duration) -> Arc<dyn Store> {
    let store = backend.open().await;
    for n in 0..OBJECTS {
        put(&*store, &key(&format!("a/{n}")), "x").await;
        put(&*store, &lease(n), "x").await;
    }
    store.close().await;
    drop(store);
    backend.open_with(&with_budget(idle_time)).await
}

fn cached_resources(store: &dyn Store) -> (bool, bool) {
    (store.cached_snapshot(&config_maps()).is_some(), store.cached_snapshot(&leases()).is_some())
}

async fn is_uncached(store: &dyn Store, resource: &portico_store::Resource) -> bool {
    matches!(store.current_state(resource).await.unwrap(), CurrentState::Uncached(_))
}

pub async fn idle_resources_are_evicted_and_reloaded(backend: &dyn Backend) {
    let store = open_two_resources(backend, Duration::ZERO).await;
    for _ in 0..3 {
        assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), OBJECTS);
        assert_eq!(cached_resources(&*store), (true, false));
        assert_eq!(store.snapshot(&leases()).await.unwrap().len(), OBJECTS);
        assert_eq!(cached_resources(&*store), (false, true));
    }
    // Reads of an evicted resource include later writes.
    let revision = put(&*store, &key("a/1"), "new").await;
    let found = store.find(&key("a/1")).await.unwrap();
    assert_eq!((found.revision, text(&found.object.unwrap().unwrap())), (revision, "new".to_owned()));
}

pub async fn used_resources_are_not_evicted_and_others_are_read_from_the_database(backend: &dyn Backend) {
    let store = open_two_resources(backend, Duration::from_secs(3_600)).await;
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), OBJECTS);
    for _ in 0..3 {
        assert!(is_uncached(&*store, &leases()).await);
        assert_eq!(store.snapshot(&leases()).await.unwrap().len(), OBJECTS);
        assert_eq!(cached_resources(&*store), (true, false));
    }
    let stale = Txn::update(lease(1), 1, value(&lease(1), "y"));
    assert!(matches!(commit(&*store, stale).await, Err(TxnError::Conflict { .. })));
}

pub async fn pinned_resources_stay_cached_and_resources_that_grow_too_large_are_evicted(
    backend: &dyn Backend,
) {
    let store = backend.open_with(&with_budget(Duration::ZERO)).await;
    store.pin(&leases());
    for n in 0..2 {
        put(&*store, &lease(n), "x").await;
    }
    let mut written = 0;
    while cached_resources(&*store).0 || written == 0 {
        put(&*store, &key(&format!("a/{written:03}")), "x").await;
        written += 1;
        assert!(written < 200, "the resource was not evicted");
    }
    assert!(cached_resources(&*store).1);
    for n in written..100 {
        put(&*store, &key(&format!("a/{n:03}")), "x").await;
    }
    assert!(is_uncached(&*store, &config_maps()).await);
    assert_eq!(store.object_counts().await.unwrap(), [(config_maps(), 100), (leases(), 2)]);
    // After it has shrunk, it is cached again.
    for n in 3..100 {
        delete(&*store, &key(&format!("a/{n:03}"))).await;
    }
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), 3);
    assert_eq!(cached_resources(&*store), (true, true));
    assert_eq!(store.object_counts().await.unwrap(), [(config_maps(), 3), (leases(), 2)]);
}

/// Returns the sizes of the pages of a list of the newest state, and the remaining count that each page reports.
async fn pages(store: &dyn Store, namespace: Option<&str>, limit: usize) -> (Vec<usize>, Vec<u64>) {
    let scope = namespace.map_or_else(|| Scope::all(&config_maps()), |n| Scope::namespace(&config_maps(), n));
    let revision = store.current_state(&config_maps()).await.unwrap().revision();
    let (mut sizes, mut remaining, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let query = ListAt { scope: scope.clone(), revision, after, limit: Some(limit), exact_count: true };
        let page = store.list_at(query).await.unwrap();
        after = page.records.last().map(|record| record.key.path().to_owned());
        sizes.push(page.records.len());
        remaining.push(page.remaining);
        if page.remaining == 0 {
            return (sizes, remaining);
        }
    }
}

pub async fn pages_count_the_remaining_objects_during_changes(backend: &dyn Backend) {
    let store = backend.open_with(&|settings| settings.cache_max_bytes = Some(1)).await;
    for n in 0..10 {
        put(&*store, &key(&format!("a/{n}")), "x").await;
    }
    for round in 0..4 {
        put(&*store, &key(&format!("b/{round}")), "x").await;
        let all = 11 + round as u64;
        let (sizes, remaining) = pages(&*store, None, 4).await;
        assert_eq!(sizes.iter().sum::<usize>() as u64, all);
        assert_eq!(remaining[..2], [all - 4, all - 8]);
        assert_eq!(pages(&*store, Some("a"), 4).await.1, [6, 2, 0]);
        assert_eq!(pages(&*store, Some("b"), 3).await.1[0], (round as u64 + 1).saturating_sub(3));
        put(&*store, &key("a/0"), "changed").await;
    }
    delete(&*store, &key("a/9")).await;
    assert_eq!(pages(&*store, Some("a"), 4).await.1, [5, 1, 0]);
    assert_eq!(store.object_counts().await.unwrap(), [(config_maps(), 13)]);
}

pub async fn pages_are_full_despite_deleted_objects(backend: &dyn Backend) {
    let store = backend.open_with(&|settings| settings.cache_max_bytes = Some(1)).await;
    for n in 0..90 {
        put(&*store, &key(&format!("a/{n:02}")), "x").await;
    }
    let remaining = [40, 41, 50, 60, 61, 62, 63];
    for n in (0..90).filter(|n| !remaining.contains(n)) {
        delete(&*store, &key(&format!("a/{n:02}"))).await;
    }
    for namespace in [None, Some("a")] {
        assert_eq!(pages(&*store, namespace, 1).await.0, [1; 7]);
        assert_eq!(pages(&*store, namespace, 3).await, (vec![3, 3, 1], vec![4, 1, 0]));
        assert_eq!(pages(&*store, namespace, 7).await, (vec![7], vec![0]));
        assert_eq!(pages(&*store, namespace, 100).await, (vec![7], vec![0]));
    }
}

/// Adds one to the number in an object, with retries after conflicts.
async fn add_one(store: &dyn Store, key: &Key) {
    loop {
        let Some(Ok(record)) = store.find(key).await.unwrap().object else { panic!("{key} is missing") };
        let number: u64 = text(&record).parse().unwrap();
        let change = Change::Put(value(key, &(number + 1).to_string()));
        match commit(store, Txn::single(key.clone(), Precondition::Revision(record.revision), change)).await {
            Ok(_) => return,
            Err(TxnError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

pub async fn evictions_are_invisible_to_readers_writers_and_watchers(backend: &dyn Backend) {
    const WRITERS: usize = 4;
    const EACH: usize = 25;
    let store = open_two_resources(backend, Duration::ZERO).await;
    let counters = [key("a/1"), lease(1)];
    for counter in &counters {
        put(&*store, counter, "0").await;
    }
    let mut watch = store.watch(Scope::all(&config_maps()), store.revision()).unwrap();
    let writer = async |_: usize| {
        for n in 0..EACH * 2 {
            add_one(&*store, &counters[n % 2]).await;
        }
    };
    let writers = futures::future::join_all((0..WRITERS).map(writer));
    let (stop, stopped) = tokio::sync::watch::channel(false);
    // Each read evicts the other resource.
    let reader = async || {
        let mut last = [0, 0];
        while !*stopped.borrow() {
            for (at, resource) in [config_maps(), leases()].iter().enumerate() {
                let snapshot = store.snapshot(resource).await.unwrap();
                assert_eq!(snapshot.len(), OBJECTS);
                assert!(snapshot.revision() >= last[at], "the revision decreased");
                last[at] = snapshot.revision();
            }
        }
    };
    let write = async {
        writers.await;
        stop.send_replace(true);
    };
    tokio::join!(write, reader(), reader());
    for counter in &counters {
        let Some(Ok(record)) = store.find(counter).await.unwrap().object else { panic!("{counter}") };
        assert_eq!(text(&record), (WRITERS * EACH).to_string());
    }
    // The previous state of each change is that of the change before.
    let events = take(&mut watch, WRITERS * EACH).await;
    for (at, event) in events.iter().enumerate() {
        assert_eq!(text(event.previous.as_ref().unwrap()), at.to_string());
        assert_eq!(text(&event.record), (at + 1).to_string());
    }
}
