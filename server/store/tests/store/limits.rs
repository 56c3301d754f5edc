//! Tests of full disks, and of limits of the history.

use std::time::Duration;

use portico_store::{Store, StoreError, Txn, TxnError, Value};

use crate::harness::*;

fn large(path: &str, bytes: usize) -> Value {
    let key = key(path);
    let small = value(&key, "large");
    let mut json = small.json().to_vec();
    json.pop();
    json.extend_from_slice(format!(r#","filler":"{}"}}"#, "x".repeat(bytes)).as_bytes());
    Value::new(json, small.indexed().clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_rejects_writes_without_loss_and_recovers() {
    let backend = Sqlite::new();
    let store = backend.open_with(&|settings| settings.max_file_bytes = Some(1 << 20)).await;
    let mut revision = put(&*store, &key("a/1"), "x").await;
    let full = loop {
        match commit(&*store, Txn::update(key("a/1"), revision, large("a/1", 20_000))).await {
            Ok(committed) => revision = committed.revision,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, TxnError::Full(_)), "{full}");
    assert!(revision > 20);
    assert_eq!(store.revision(), revision);
    // Reads continue; no part of the rejected write is visible.
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    assert_eq!(snapshot.get(&key("a/1")).unwrap().revision, revision);
    // Deleting history frees space.
    store.compact(revision).await.unwrap();
    let next = commit(&*store, Txn::update(key("a/1"), revision, large("a/1", 20_000))).await.unwrap();
    assert_eq!(next.revision, revision + 1);
    store.close().await;
    drop(store);
    let store = backend.open().await;
    assert_eq!(store.revision(), next.revision);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_shrinks_after_compaction() {
    let backend = Sqlite::new();
    let store = backend.open().await;
    let mut revision = put(&*store, &key("a/1"), "x").await;
    for _ in 0..400 {
        let update = Txn::update(key("a/1"), revision, large("a/1", 20_000));
        revision = commit(&*store, update).await.unwrap().revision;
    }
    store.compact(3).await.unwrap();
    store.close().await;
    drop(store);
    let before = std::fs::metadata(backend.path()).unwrap().len();
    assert!(before > 8_000_000, "{before}");
    let store = backend.open().await;
    store.compact(i64::MAX).await.unwrap();
    // At most the spare pages and the current content remain.
    let after = std::fs::metadata(backend.path()).unwrap().len();
    assert!(after < 1_500_000, "{before} -> {after}");
}

/// Waits until the compaction task has compacted beyond a revision.
async fn compacted_beyond(store: &dyn Store, revision: i64) {
    let reached = async {
        while store.compacted() <= revision {
            // Maintenance runs between writes.
            put(store, &key("a/turn"), "x").await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, reached).await.expect("history was not compacted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_is_compacted_by_size_in_the_background() {
    let backend = Sqlite::new();
    let tune = |settings: &mut portico_store::Settings| {
        settings.history_max_bytes = 200_000;
        settings.compaction_interval = Duration::from_millis(20);
    };
    let store = backend.open_with(&tune).await;
    let mut revision = put(&*store, &key("a/1"), "x").await;
    for _ in 0..30 {
        let update = Txn::update(key("a/1"), revision, large("a/1", 20_000));
        revision = commit(&*store, update).await.unwrap().revision;
    }
    compacted_beyond(&*store, 5).await;
    assert!(matches!(store.get_at(&key("a/1"), 3).await, Err(StoreError::Compacted { .. })));
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().get(&key("a/1")).unwrap().revision, revision);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_is_compacted_by_age_in_the_background() {
    let backend = Sqlite::new();
    let tune = |settings: &mut portico_store::Settings| {
        settings.history_retention = Duration::from_secs(1);
        settings.compaction_interval = Duration::from_millis(20);
    };
    let store = backend.open_with(&tune).await;
    let revision = put(&*store, &key("a/1"), "x").await;
    assert!(store.compacted() < revision);
    compacted_beyond(&*store, revision).await;
}
