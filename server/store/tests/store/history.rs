//! Tests of exact reads, compaction, owners and namespaces.

use portico_store::{Change, Key, ListAt, Precondition, Resource, Scope, StoreError, Txn, Value, WatchError};

use crate::harness::*;

fn list_at_revision(revision: i64) -> ListAt {
    ListAt { scope: Scope::all(&config_maps()), revision, after: None, limit: None, exact_count: true }
}

pub async fn exact_reads_return_the_state_of_their_revision(backend: &dyn Backend) {
    let store = backend.open().await;
    put(&*store, &key("a/1"), "1").await;
    put(&*store, &key("a/2"), "2").await;
    put(&*store, &key("a/1"), "3").await;
    delete(&*store, &key("a/2")).await;
    put(&*store, &key("b/1"), "5").await;
    let expected: [&[&str]; 6] = [
        &[],
        &["a/1@2=1"],
        &["a/1@2=1", "a/2@3=2"],
        &["a/1@4=3", "a/2@3=2"],
        &["a/1@4=3"],
        &["a/1@4=3", "b/1@6=5"],
    ];
    for (revision, expected) in (rev(1)..).zip(expected) {
        assert_eq!(
            lines(&store.list_at(list_at_revision(revision)).await.unwrap().records),
            expected,
            "at {revision}"
        );
    }
    assert_eq!(text(&store.get_at(&key("a/2"), rev(4)).await.unwrap().unwrap()), "2");
    assert!(store.get_at(&key("a/2"), rev(5)).await.unwrap().is_none());
    let namespace = ListAt { scope: Scope::namespace(&config_maps(), "a"), ..list_at_revision(rev(6)) };
    assert_eq!(lines(&store.list_at(namespace).await.unwrap().records), ["a/1@4=3"]);
    let future = store.list_at(list_at_revision(rev(7))).await.unwrap_err();
    assert!(matches!(future, StoreError::Future { current } if current == rev(6)));
}

pub async fn pages_of_an_exact_read_are_consistent_and_count_the_remaining_objects(backend: &dyn Backend) {
    let store = backend.open().await;
    for namespace in ["a", "a-b", "b"] {
        for n in 0..25 {
            put(&*store, &key(&format!("{namespace}/{n:02}")), "old").await;
        }
    }
    let revision = store.revision();
    for scope in [Scope::all(&config_maps()), Scope::namespace(&config_maps(), "a")] {
        let first = ListAt { scope: scope.clone(), revision, after: None, limit: None, exact_count: true };
        let whole = lines(&store.list_at(first).await.unwrap().records);
        let mut paged = Vec::new();
        let mut after = None;
        loop {
            let query = ListAt { scope: scope.clone(), revision, after, limit: Some(10), exact_count: true };
            let page = store.list_at(query).await.unwrap();
            paged.extend(lines(&page.records));
            assert_eq!(paged.len() + usize::try_from(page.remaining).unwrap(), whole.len());
            if page.remaining == 0 {
                break;
            }
            after = page.records.last().map(|record| record.key.path().to_owned());
            // Changes between the pages are not visible in them.
            put(&*store, &key("a/05"), "new").await;
            put(&*store, &key(&format!("a/{}", paged.len())), "new").await;
        }
        assert_eq!(paged, whole);
    }
}

pub async fn compaction_deletes_history_but_not_the_current_state(backend: &dyn Backend) {
    let store = backend.open().await;
    for n in 0..2_500 {
        put(&*store, &key(&format!("a/{}", n % 3)), &n.to_string()).await;
    }
    delete(&*store, &key("a/0")).await;
    let before = lines(store.snapshot(&config_maps()).await.unwrap().iter());
    assert_eq!(store.compact(2_400).await.unwrap(), 2_400);
    assert_eq!(store.compacted(), 2_400);
    assert_eq!(lines(&store.list_at(list_at_revision(2_400)).await.unwrap().records).len(), 3);
    assert!(matches!(
        store.list_at(list_at_revision(2_399)).await,
        Err(StoreError::Compacted { oldest: 2_400 })
    ));
    assert!(matches!(store.get_at(&key("a/1"), 5).await, Err(StoreError::Compacted { oldest: 2_400 })));
    let too_old = store.watch(Scope::all(&config_maps()), 2_399).unwrap_err();
    assert!(matches!(too_old, WatchError::Compacted { wanted: 2_399, oldest: 2_400 }));
    let last = store.revision();
    let mut watch = store.watch(Scope::all(&config_maps()), 2_400).unwrap();
    let events = take(&mut watch, usize::try_from(last - 2_400).unwrap()).await;
    assert!(events.iter().all(|event| event.previous.is_some()));
    assert_eq!(store.compact(i64::MAX).await.unwrap(), last);
    assert_eq!(store.compact(5).await.unwrap(), last);
    store.close().await;
    drop(store);
    let store = backend.open().await;
    assert_eq!((store.compacted(), store.revision()), (last, last));
    assert_eq!(lines(store.snapshot(&config_maps()).await.unwrap().iter()), before);
    assert_eq!(lines(&store.list_at(list_at_revision(last)).await.unwrap().records), before);
    put(&*store, &key("a/0"), "again").await;
}

pub async fn dependents_follow_the_owner_references(backend: &dyn Backend) {
    let store = backend.open().await;
    let put_owned = async |key: &Key, owners: &[&str]| {
        let change = Change::Put(value_with_owners(key, "x", owners));
        commit(&*store, Txn::single(key.clone(), Precondition::Any, change)).await.unwrap();
    };
    let dependents = async |owner: &str| -> Vec<String> {
        store.dependents(owner).await.unwrap().iter().map(ToString::to_string).collect()
    };
    let lease = Key::new(&leases(), "a", "l");
    put_owned(&key("a/1"), &["o1", "o2", "o1"]).await;
    put_owned(&key("a/2"), &["o1"]).await;
    put_owned(&lease, &["o1"]).await;
    assert_eq!(
        dependents("o1").await,
        ["configmaps/a/1", "configmaps/a/2", "leases.coordination.k8s.io/a/l"]
    );
    put_owned(&key("a/1"), &["o2", "o3"]).await;
    delete(&*store, &key("a/2")).await;
    assert_eq!(dependents("o1").await, ["leases.coordination.k8s.io/a/l"]);
    assert_eq!((dependents("o2").await, dependents("o3").await).0, ["configmaps/a/1"]);
    assert!(dependents("unknown").await.is_empty());
}

pub async fn terminating_objects_are_found_in_memory_and_in_the_database(backend: &dyn Backend) {
    let store = backend.open().await;
    for path in ["a/1", "a/2"] {
        put(&*store, &key(path), "x").await;
    }
    assert!(store.terminating_keys().await.unwrap().is_empty());
    let marked = |path: &str| {
        let json =
            format!(r#"{{"metadata":{{"name":"{path}","deletionTimestamp":"2026-01-02T03:04:05Z"}}}}"#);
        let indexed = portico_store::Indexed { splice: 13, ..Default::default() };
        Txn::single(key(path), Precondition::Exists, Change::Put(Value::new(json.as_bytes(), indexed)))
    };
    commit(&*store, marked("a/2")).await.unwrap();
    assert_eq!(store.terminating_keys().await.unwrap(), [key("a/2")]);
    store.close().await;
    drop(store);
    let store = backend.open().await;
    assert_eq!(store.terminating_keys().await.unwrap(), [key("a/2")], "no resource is cached");
    put(&*store, &key("a/2"), "no more").await;
    assert!(store.terminating_keys().await.unwrap().is_empty());
}

pub async fn resources_in_a_namespace_follow_its_objects(backend: &dyn Backend) {
    let store = backend.open().await;
    put(&*store, &key("a/1"), "x").await;
    put(&*store, &Key::new(&leases(), "a", "l"), "x").await;
    put(&*store, &Key::new(&leases(), "a-b", "l"), "x").await;
    put(&*store, &Key::new(&Resource::new("", "nodes"), "", "a"), "x").await;
    assert_eq!(store.resources_in("a").await.unwrap(), [config_maps(), leases()]);
    assert_eq!(store.resources_in("a-b").await.unwrap(), [leases()]);
    delete(&*store, &key("a/1")).await;
    assert_eq!(store.resources_in("a").await.unwrap(), [leases()]);
    assert!(store.resources_in("").await.unwrap().is_empty());
}

pub async fn objects_are_counted_by_resource(backend: &dyn Backend) {
    let store = backend.open().await;
    for path in ["a/1", "a/2", "b/1"] {
        put(&*store, &key(path), "x").await;
    }
    put(&*store, &key("a/1"), "y").await;
    put(&*store, &Key::new(&leases(), "a", "l"), "x").await;
    delete(&*store, &key("b/1")).await;
    assert_eq!(store.object_counts().await.unwrap(), [(config_maps(), 2), (leases(), 1)]);
    let sizes = store.average_sizes().await.unwrap();
    assert_eq!(
        sizes.iter().map(|(resource, _)| resource.clone()).collect::<Vec<_>>(),
        [config_maps(), leases()]
    );
    assert!(sizes.iter().all(|(_, bytes)| (1..1000).contains(bytes)), "{sizes:?}");
    delete(&*store, &Key::new(&leases(), "a", "l")).await;
    assert_eq!(store.object_counts().await.unwrap(), [(config_maps(), 2)]);
}
