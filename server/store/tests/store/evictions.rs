//! Tests of a cache with a size limit: evictions and reloads are not visible to readers, writers and watchers.

use std::sync::Arc;
use std::time::Duration;

use portico_store::{Change, Expect, Key, ListAt, Scope, Settings, State, Store, Txn, TxnError};

use crate::harness::*;

/// Number of objects, of about half a kilobyte each in memory.
const OBJECTS: usize = 20;
/// Cache size in bytes for one of two such resources.
const BUDGET: u64 = 14_000;

fn lease(n: usize) -> Key {
    Key::new(&leases(), "a", &n.to_string())
}

fn limited(rest: Duration) -> impl Fn(&mut Settings) + Sync {
    move |settings| (settings.cache_max_bytes, settings.cache_rest) = (Some(BUDGET), rest)
}

/// Writes two resources with the same number of objects and opens the store again, so that none is cached.
async fn two_resources(backend: &dyn Backend, rest: Duration) -> Arc<dyn Store> {
    let store = backend.open().await;
    for n in 0..OBJECTS {
        put(&*store, &key(&format!("a/{n}")), "x").await;
        put(&*store, &lease(n), "x").await;
    }
    store.close().await;
    drop(store);
    backend.open_with(&limited(rest)).await
}

fn held(store: &dyn Store) -> (bool, bool) {
    (store.cached(&config_maps()).is_some(), store.cached(&leases()).is_some())
}

async fn is_stored(store: &dyn Store, resource: &portico_store::Resource) -> bool {
    matches!(store.state(resource).await.unwrap(), State::Stored(_))
}

pub async fn what_was_not_used_makes_room_and_comes_back(backend: &dyn Backend) {
    let store = two_resources(backend, Duration::ZERO).await;
    for _ in 0..3 {
        assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), OBJECTS);
        assert_eq!(held(&*store), (true, false));
        assert_eq!(store.snapshot(&leases()).await.unwrap().len(), OBJECTS);
        assert_eq!(held(&*store), (false, true));
    }
    // An evicted resource is written, and read back with the write.
    let revision = put(&*store, &key("a/1"), "new").await;
    let found = store.find(&key("a/1")).await.unwrap();
    assert_eq!((found.revision, text(&found.object.unwrap().unwrap())), (revision, "new".to_owned()));
}

pub async fn what_is_used_keeps_its_room_and_the_other_one_is_read_from_the_database(backend: &dyn Backend) {
    let store = two_resources(backend, Duration::from_secs(3_600)).await;
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), OBJECTS);
    for _ in 0..3 {
        assert!(is_stored(&*store, &leases()).await);
        assert_eq!(store.snapshot(&leases()).await.unwrap().len(), OBJECTS);
        assert_eq!(held(&*store), (true, false));
    }
    let stale = Txn::update(lease(1), 1, value(&lease(1), "y"));
    assert!(matches!(commit(&*store, stale).await, Err(TxnError::Conflict { .. })));
}

pub async fn what_stays_by_wish_stays_and_what_grows_too_large_leaves(backend: &dyn Backend) {
    let store = backend.open_with(&limited(Duration::ZERO)).await;
    store.keep(&leases());
    for n in 0..2 {
        put(&*store, &lease(n), "x").await;
    }
    let mut written = 0;
    while held(&*store).0 || written == 0 {
        put(&*store, &key(&format!("a/{written:03}")), "x").await;
        written += 1;
        assert!(written < 200, "it never left");
    }
    assert!(held(&*store).1);
    for n in written..100 {
        put(&*store, &key(&format!("a/{n:03}")), "x").await;
    }
    assert!(is_stored(&*store, &config_maps()).await);
    assert_eq!(store.counts().await.unwrap(), [(config_maps(), 100), (leases(), 2)]);
    // After it has shrunk, it is cached again.
    for n in 3..100 {
        delete(&*store, &key(&format!("a/{n:03}"))).await;
    }
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), 3);
    assert_eq!(held(&*store), (true, true));
    assert_eq!(store.counts().await.unwrap(), [(config_maps(), 3), (leases(), 2)]);
}

/// Returns the pages of a list of the newest state, and the number of objects after each by its own count.
async fn pages(store: &dyn Store, namespace: Option<&str>, limit: usize) -> (Vec<usize>, Vec<u64>) {
    let scope = namespace.map_or_else(|| Scope::all(&config_maps()), |n| Scope::namespace(&config_maps(), n));
    let revision = store.state(&config_maps()).await.unwrap().revision();
    let (mut sizes, mut remaining, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let query = ListAt { scope: scope.clone(), revision, after, limit: Some(limit), counted: true };
        let page = store.list_at(query).await.unwrap();
        after = page.records.last().map(|record| record.key.path().to_owned());
        sizes.push(page.records.len());
        remaining.push(page.remaining);
        if page.remaining == 0 {
            return (sizes, remaining);
        }
    }
}

pub async fn pages_count_how_many_follow_while_objects_come_and_go(backend: &dyn Backend) {
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
    assert_eq!(store.counts().await.unwrap(), [(config_maps(), 13)]);
}

pub async fn pages_are_full_whatever_is_deleted_before_among_and_behind_them(backend: &dyn Backend) {
    let store = backend.open_with(&|settings| settings.cache_max_bytes = Some(1)).await;
    for n in 0..90 {
        put(&*store, &key(&format!("a/{n:02}")), "x").await;
    }
    let stay = [40, 41, 50, 60, 61, 62, 63];
    for n in (0..90).filter(|n| !stay.contains(n)) {
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
        let Some(Ok(record)) = store.find(key).await.unwrap().object else { panic!("{key} is gone") };
        let number: u64 = text(&record).parse().unwrap();
        let change = Change::Put(value(key, &(number + 1).to_string()));
        match commit(store, Txn::one(key.clone(), Expect::Revision(record.revision), change)).await {
            Ok(_) => return,
            Err(TxnError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

pub async fn nobody_notices_that_resources_come_and_go(backend: &dyn Backend) {
    const WRITERS: usize = 4;
    const EACH: usize = 25;
    let store = two_resources(backend, Duration::ZERO).await;
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
    let (done, over) = tokio::sync::watch::channel(false);
    // Each read evicts the other resource.
    let reader = async || {
        let mut last = [0, 0];
        while !*over.borrow() {
            for (at, resource) in [config_maps(), leases()].iter().enumerate() {
                let snapshot = store.snapshot(resource).await.unwrap();
                assert_eq!(snapshot.len(), OBJECTS);
                assert!(snapshot.revision() >= last[at], "time went back");
                last[at] = snapshot.revision();
            }
        }
    };
    let write = async {
        writers.await;
        done.send_replace(true);
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
