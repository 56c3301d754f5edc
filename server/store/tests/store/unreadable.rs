//! Tests of objects whose stored bytes cannot be read: they do not affect other objects, and can be deleted.

use std::sync::Arc;

use portico_store::{
    Change, ListAt, Precondition, Scope, Snapshot, Store, StoreError, Txn, TxnError, Unreadable, WatchError,
};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use crate::harness::*;

/// New content of an object, and the reported error.
const DAMAGES: [(&str, &str); 6] = [
    ("x'00ffdeadbeef'", "unknown value format 0"),
    ("x''", "the value is empty"),
    ("x'017b', checksum = NULL", "unexpected end of JSON input"),
    ("substr(value, 1, length(value) / 2), checksum = NULL", "unexpected end of JSON input"),
    (
        r#"CAST(replace(CAST(value AS TEXT), '"data":{"text":"y"}', '"data":{"text":"x"}') AS BLOB)"#,
        "checksum mismatch",
    ),
    (
        r#"unhex(replace(hex(value), hex('"data":{"text":"y"}'), hex('"data":{"text":"') || 'FF227D')), checksum = NULL"#,
        "the value is not UTF-8",
    ),
];

pub async fn raw_connection(backend: &Sqlite) -> SqliteConnection {
    SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap()
}

/// Runs SQL outside of the store.
pub async fn execute(backend: &Sqlite, sql: &str) -> u64 {
    let mut connection = raw_connection(backend).await;
    let result = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    result.rows_affected()
}

/// Overwrites the current state of an object outside of the store.
pub async fn damage(backend: &Sqlite, name: &str, value: &str) {
    let update = format!(
        "UPDATE log SET value = {value} WHERE revision = (SELECT max(revision) FROM log WHERE name = '{name}')"
    );
    assert_eq!(execute(backend, &update).await, 1);
}

/// Writes objects `a/0` to `a/4`, damages `a/2`, which has an update and an owner, and opens the store again.
async fn open_damaged(backend: &Sqlite, value: &str) -> Arc<dyn Store> {
    let store = backend.open().await;
    for name in 0..5 {
        put(&*store, &key(&format!("a/{name}")), "x").await;
    }
    let change = Change::Put(value_with_owners(&key("a/2"), "y", &["owner"]));
    commit(&*store, Txn::single(key("a/2"), Precondition::Exists, change)).await.unwrap();
    store.close().await;
    drop(store);
    damage(backend, "2", value).await;
    backend.open().await
}

fn names(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.iter().map(|record| record.key.name()).collect()
}

fn paths(unreadable: &[Unreadable]) -> Vec<&str> {
    unreadable.iter().map(|object| object.key().path()).collect()
}

async fn an_unreadable_object_does_not_affect_other_objects() {
    for (value, reason) in DAMAGES {
        let backend = Sqlite::new();
        let store = open_damaged(&backend, value).await;
        let snapshot = store.snapshot(&config_maps()).await.unwrap();
        assert_eq!(names(&snapshot), ["0", "1", "3", "4"]);
        let unreadable = snapshot.unreadable("a/2").unwrap();
        assert!(unreadable.reason().starts_with(reason), "{}", unreadable.reason());
        assert_eq!((unreadable.uid(), unreadable.key()), ("uid-2", &key("a/2")));
        assert_eq!(snapshot.unreadable_in(Some("a")).count(), 1);
        assert_eq!(snapshot.unreadable_in(Some("b")).count(), 0);
        assert_eq!(paths(&store.condition().unreadable), ["a/2"]);

        let mut watch = store.watch(Scope::all(&config_maps()), store.revision()).unwrap();
        let created = commit(&*store, Txn::create(key("a/5"), value_of("a/5"))).await.unwrap().revision;
        put(&*store, &key("a/0"), "z").await;
        delete(&*store, &key("a/1")).await;
        let events = take(&mut watch, 3).await;
        let expected = [
            format!("Added a/5@{created}"),
            format!("Modified a/0@{}", created + 1),
            format!("Deleted a/1@{}", created + 2),
        ];
        assert_eq!(event_lines(&events), expected);
    }
}

fn value_of(path: &str) -> portico_store::Value {
    value(&key(path), "x")
}

async fn an_unreadable_object_can_only_be_deleted() {
    let backend = Sqlite::new();
    let store = open_damaged(&backend, "x'09'").await;
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    let revision = snapshot.unreadable("a/2").unwrap().revision();
    let new = || Change::Put(value_of("a/2"));
    for (expect, change) in [
        (Precondition::Absent, new()),
        (Precondition::Any, new()),
        (Precondition::Exists, new()),
        (Precondition::Revision(revision), new()),
        (Precondition::Revision(revision), Change::Check),
        (Precondition::Absent, Change::Check),
    ] {
        let refused = commit(&*store, Txn::single(key("a/2"), expect, change)).await;
        assert!(matches!(refused, Err(TxnError::Unreadable { key: found }) if found == key("a/2")));
    }
    let stale = Txn::delete(key("a/2"), revision - 1, value_of("a/2"));
    assert!(matches!(commit(&*store, stale).await, Err(TxnError::Conflict { .. })));
    assert_eq!(store.dependents("owner").await.unwrap(), [key("a/2")]);

    let mut watch = store.watch(Scope::all(&config_maps()), store.revision()).unwrap();
    let deleted = Txn::delete(key("a/2"), revision, value_of("a/2"));
    let deleted = commit(&*store, deleted).await.unwrap().revision;
    let events = take(&mut watch, 1).await;
    assert_eq!(event_lines(&events), [format!("Deleted a/2@{deleted}")]);
    assert!(events[0].has_unreadable_previous());
    assert!(store.snapshot(&config_maps()).await.unwrap().unreadable("a/2").is_none());
    assert!(store.condition().unreadable.is_empty());
    assert!(store.dependents("owner").await.unwrap().is_empty());
    // Past events report the same, and the name is free again.
    store.close().await;
    drop(store);
    let store = backend.open().await;
    let mut past = store.watch(Scope::all(&config_maps()), deleted - 1).unwrap();
    let events = take(&mut past, 1).await;
    assert!(events[0].has_unreadable_previous() && !events[0].record.value.is_unreadable());
    commit(&*store, Txn::create(key("a/2"), value_of("a/2"))).await.unwrap();
}

async fn exact_reads_omit_and_report_unreadable_objects() {
    let backend = Sqlite::new();
    let store = open_damaged(&backend, "x'09'").await;
    let revision = store.revision();
    // Later changes force the reads below to use the log.
    put(&*store, &key("a/9"), "x").await;
    let list = |after: Option<&str>, limit| ListAt {
        scope: Scope::all(&config_maps()),
        revision,
        after: after.map(str::to_owned),
        limit,
        exact_count: true,
    };
    let all = store.list_at(list(None, None)).await.unwrap();
    assert_eq!((all.records.len(), all.remaining), (4, 0));
    assert_eq!(paths(&all.unreadable), ["a/2"]);
    let page = store.list_at(list(None, Some(2))).await.unwrap();
    assert_eq!((page.records.len(), page.remaining, page.unreadable.len()), (2, 3, 0));
    let page = store.list_at(list(Some("a/1"), Some(1))).await.unwrap();
    assert_eq!((page.records[0].key.name(), page.remaining), ("3", 1));
    assert_eq!(paths(&page.unreadable), ["a/2"]);
    let error = store.get_at(&key("a/2"), revision).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { key: found, .. } if found == key("a/2")));
}

async fn a_watch_that_reaches_an_unreadable_object_ends_with_its_key() {
    let backend = Sqlite::new();
    let store = open_damaged(&backend, "x'09'").await;
    let mut watch = store.watch(Scope::all(&config_maps()), 1).unwrap();
    let ended = watch.next().await;
    let Err(WatchError::Store(StoreError::Corrupt { key: found, .. })) = ended else { panic!("{ended:?}") };
    assert_eq!(found, key("a/2"));
}

crate::cached_and_uncached! {
    an_unreadable_object_does_not_affect_other_objects,
    an_unreadable_object_can_only_be_deleted,
    exact_reads_omit_and_report_unreadable_objects,
    a_watch_that_reaches_an_unreadable_object_ends_with_its_key,
}
