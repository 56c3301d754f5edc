//! Tests of revisions, atomicity, preconditions and durability.

use std::sync::Arc;

use portico_store::{Change, Key, ListAt, Operation, Precondition, Scope, Store, Txn, TxnError, Value};

use crate::harness::*;

fn operation(path: &str, precondition: Precondition, text: &str) -> Operation {
    Operation { key: key(path), precondition, change: Change::Put(value(&key(path), text)) }
}

pub async fn revisions_strictly_increase_and_are_consecutive_within_a_txn(backend: &dyn Backend) {
    let store = backend.open().await;
    assert_eq!(store.revision(), 1);
    let operations = ["a/1", "a/2", "b/1"].map(|path| operation(path, Precondition::Absent, "x")).to_vec();
    let committed = commit(&*store, Txn { operations }).await.unwrap();
    let revisions: Vec<i64> = committed.records.iter().flatten().map(|record| record.revision).collect();
    assert_eq!((revisions, committed.revision, store.revision()), (vec![2, 3, 4], 4, 4));
    let mut last = 4;
    for round in 0..20 {
        let revision = put(&*store, &key("a/1"), &round.to_string()).await;
        assert!(revision > last);
        last = revision;
    }
    assert_eq!(store.latest_revision().await.unwrap(), last);
}

pub async fn preconditions_are_checked(backend: &dyn Backend) {
    let store = backend.open().await;
    let a = key("a/1");
    let created = commit(&*store, Txn::create(a.clone(), value(&a, "1"))).await.unwrap();
    let duplicate = commit(&*store, Txn::create(a.clone(), value(&a, "2"))).await.unwrap_err();
    assert!(matches!(duplicate, TxnError::Exists { current, .. } if text(&current) == "1"));
    let stale = commit(&*store, Txn::update(a.clone(), 1, value(&a, "2"))).await.unwrap_err();
    assert!(matches!(stale, TxnError::Conflict { current, .. } if current.revision == created.revision));
    let updated = commit(&*store, Txn::update(a.clone(), created.revision, value(&a, "2"))).await.unwrap();
    assert_eq!(text(updated.record().unwrap()), "2");
    let missing = key("a/2");
    for expect in [Precondition::Revision(2), Precondition::Exists] {
        for change in [Change::Put(value(&missing, "x")), Change::Delete(value(&missing, "x")), Change::Check]
        {
            let refused = commit(&*store, Txn::single(missing.clone(), expect, change)).await.unwrap_err();
            assert!(matches!(refused, TxnError::NotFound { key } if key == missing));
        }
    }
    let no_op = Txn::single(missing.clone(), Precondition::Any, Change::Delete(value(&missing, "x")));
    let no_op = commit(&*store, no_op).await.unwrap();
    assert_eq!((no_op.records, no_op.revision), (vec![None], updated.revision));
    let deleted = commit(&*store, Txn::delete(a.clone(), updated.revision, value(&a, "3"))).await.unwrap();
    assert_eq!(text(deleted.record().unwrap()), "3");
    assert!(store.snapshot(&config_maps()).await.unwrap().is_empty());
    commit(&*store, Txn::create(a.clone(), value(&a, "4"))).await.unwrap();
}

pub async fn a_rejected_txn_writes_nothing_and_does_not_affect_other_txns(backend: &dyn Backend) {
    let store = backend.open().await;
    put(&*store, &key("a/0"), "old").await;
    let txns = vec![
        Txn { operations: vec![operation("a/1", Precondition::Absent, "1")] },
        Txn {
            operations: vec![
                operation("a/2", Precondition::Absent, "2"),
                operation("a/0", Precondition::Absent, "no"),
            ],
        },
        Txn { operations: vec![operation("a/3", Precondition::Absent, "3")] },
        Txn { operations: vec![operation("a/3", Precondition::Absent, "twice")] },
    ];
    let results = store.commit(txns).await;
    let accepted: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(accepted, [true, false, true, false]);
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    // Txns of different objects may be committed in any order.
    let found: Vec<_> = snapshot.iter().map(|record| (record.key.path(), text(record))).collect();
    assert_eq!(
        found,
        [("a/0", "old"), ("a/1", "1"), ("a/3", "3")].map(|(path, text)| (path, text.to_owned()))
    );
}

pub async fn a_txn_sees_its_own_earlier_operations(backend: &dyn Backend) {
    let store = backend.open().await;
    let a = key("a/1");
    let operations = vec![
        operation("a/1", Precondition::Absent, "1"),
        Operation {
            key: a.clone(),
            precondition: Precondition::Revision(2),
            change: Change::Delete(value(&a, "2")),
        },
        Operation { key: a.clone(), precondition: Precondition::Absent, change: Change::Check },
        operation("a/1", Precondition::Absent, "3"),
        operation("a/1", Precondition::Exists, "4"),
    ];
    let committed = commit(&*store, Txn { operations }).await.unwrap();
    assert_eq!(committed.revision, 5);
    let mut watch = store.watch(portico_store::Scope::all(&config_maps()), 1).unwrap();
    let events = take(&mut watch, 4).await;
    assert_eq!(event_lines(&events), ["Added a/1@2", "Deleted a/1@3", "Added a/1@4", "Modified a/1@5"]);
    let past = store.get_at(&a, 4).await.unwrap().unwrap();
    assert_eq!(text(&past), "3");
}

pub async fn one_of_many_concurrent_updates_of_a_revision_succeeds(backend: &dyn Backend) {
    let store = backend.open().await;
    let a = key("a/1");
    for round in 0..10 {
        let revision = put(&*store, &a, "start").await;
        let update = |n: i32| {
            let (store, a) = (store.clone(), a.clone());
            async move {
                commit(&*store, Txn::update(a.clone(), revision, value(&a, &format!("{round}-{n}")))).await
            }
        };
        let results = futures::future::join_all((0..16).map(update)).await;
        let succeeded: Vec<_> = results.iter().flatten().collect();
        assert_eq!(succeeded.len(), 1);
        let failed = results.iter().filter_map(|result| result.as_ref().err());
        let winner = succeeded[0].record().unwrap();
        for error in failed {
            assert!(matches!(error, TxnError::Conflict { current, .. } if current == winner));
        }
    }
}

pub async fn oversized_txns_are_rejected(backend: &dyn Backend) {
    let store = backend.open().await;
    let a = key("a/1");
    let large = Value::new(vec![b' '; Txn::MAX_VALUE_BYTES + 1], value(&a, "x").indexed().clone());
    let large = commit(&*store, Txn::create(a.clone(), large)).await.unwrap_err();
    assert!(matches!(large, TxnError::TooLarge(text) if text.contains("configmaps/a/1")));
    let operations = vec![operation("a/1", Precondition::Any, "x"); Txn::MAX_OPERATIONS + 1];
    assert!(matches!(commit(&*store, Txn { operations }).await, Err(TxnError::TooLarge(_))));
    let operations = vec![operation("a/1", Precondition::Any, "x"); Txn::MAX_OPERATIONS];
    assert_eq!(commit(&*store, Txn { operations }).await.unwrap().revision, 1 + Txn::MAX_OPERATIONS as i64);
    assert_eq!(commit(&*store, Txn::default()).await.unwrap().revision, store.revision());
}

pub async fn a_committed_write_is_immediately_visible(backend: &dyn Backend) {
    let store = backend.open().await;
    let write = |n: usize| {
        let store = store.clone();
        async move {
            let key = key(&format!("a/{n}"));
            let revision = put(&*store, &key, "x").await;
            assert!(store.revision() >= revision);
            // A cached state shows the write without waiting.
            if let Some(snapshot) = store.cached_snapshot(&config_maps()) {
                assert!(snapshot.revision() >= revision);
                assert_eq!(snapshot.get(&key).unwrap().revision, revision);
            }
            let found = store.find(&key).await.unwrap();
            assert!(found.revision >= revision);
            assert_eq!(found.object.unwrap().unwrap().revision, revision);
            store.wait_for_revision(revision).await.unwrap();
        }
    };
    futures::future::join_all((0..200).map(write)).await;
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), 200);
}

pub async fn a_reopened_store_has_the_same_state(backend: &dyn Backend) {
    let store = backend.open().await;
    let identity = store.identity().clone();
    for n in 0..300 {
        put(&*store, &key(&format!("kube-system/{n:03}")), "1").await;
    }
    put(&*store, &key("kube/000"), "2").await;
    delete(&*store, &key("kube-system/007")).await;
    let before = store.snapshot(&config_maps()).await.unwrap();
    let revision = store.revision();
    store.close().await;
    drop(store);
    let store = backend.open().await;
    assert_eq!((store.identity(), store.revision()), (&identity, revision));
    let after = store.snapshot(&config_maps()).await.unwrap();
    assert_eq!(lines(after.iter()), lines(before.iter()));
    assert_eq!(after.iter().collect::<Vec<_>>(), before.iter().collect::<Vec<_>>());
    assert_eq!(put(&*store, &key("kube/000"), "3").await, revision + 1);
}

pub async fn a_closed_store_finishes_queued_writes_and_rejects_new_ones(backend: &dyn Backend) {
    let store = backend.open().await;
    let paths: Vec<String> = (0..500).map(|n| format!("a/{n}")).collect();
    let writes: Vec<_> =
        paths.iter().map(|path| commit(&*store, Txn::create(key(path), value(&key(path), "x")))).collect();
    let (results, ()) = futures::future::join(futures::future::join_all(writes), store.close()).await;
    let accepted = results.iter().filter(|result| result.is_ok()).count();
    assert!(results.iter().flatten().count() == accepted);
    assert!(
        results
            .iter()
            .filter_map(|result| result.as_ref().err())
            .all(|error| matches!(error, TxnError::Closed))
    );
    let late = commit(&*store, Txn::create(key("a/late"), value(&key("a/late"), "x"))).await;
    assert!(matches!(late, Err(TxnError::Closed)));
    assert!(store.latest_revision().await.is_err());
    assert!(store.wait_for_revision(i64::MAX).await.is_err());
    drop(store);
    let store: Arc<dyn Store> = backend.open().await;
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), accepted);
}

pub async fn names_and_owner_uids_may_contain_any_text(backend: &dyn Backend) {
    let store = backend.open().await;
    let names = ["a\0", "a\u{1}", "a\u{1}\u{1}", "a\u{2}", "b'\"\\", "ä%_", "\u{10ffff}"];
    for name in names {
        let key = Key::new(&config_maps(), "n", name);
        let change = Change::Put(value_with_owners(&key, "1", &[&format!("uid\\u0000-{}", name.len())]));
        commit(&*store, Txn::single(key, Precondition::Absent, change)).await.unwrap();
    }
    let owners = store.owner_uids().await.unwrap();
    assert!(owners.iter().all(|owner| owner.starts_with("uid\0-")), "{owners:?}");
    let dependents = store.dependents("uid\0-2").await.unwrap();
    assert_eq!(dependents.iter().map(Key::name).collect::<Vec<_>>(), ["a\0", "a\u{1}", "a\u{2}"]);
    store.close().await;
    drop(store);
    let store = backend.open().await;
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    assert_eq!(snapshot.iter().map(|record| record.key.name()).collect::<Vec<_>>(), names);
    let past = ListAt {
        scope: Scope::namespace(&config_maps(), "n"),
        revision: store.revision() - 1,
        after: Some("n/a\0".to_owned()),
        limit: Some(2),
        exact_count: true,
    };
    put(&*store, &key("z/z"), "later").await;
    let page = store.list_at(past).await.unwrap();
    assert_eq!(
        page.records.iter().map(|record| record.key.name()).collect::<Vec<_>>(),
        ["a\u{1}", "a\u{1}\u{1}"]
    );
}
