//! Tests that this version opens, reads, writes and watches databases of every released schema.

use std::path::{Path, PathBuf};

use portico_store::{Doctor, ListAt, MetadataIndexer, Scope};

use crate::harness::*;

/// Stored databases, created with `make` by the version that introduced each migration.
const FIXTURES: [&str; 4] = ["schema-0001.db", "schema-0002.db", "schema-0003.db", "schema-0004.db"];

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

#[test]
fn every_migration_has_a_fixture() {
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/sqlite");
    assert_eq!(
        std::fs::read_dir(migrations).unwrap().count(),
        FIXTURES.len(),
        "run create_fixture for the new schema"
    );
    assert_eq!(std::fs::read_dir(testdata()).unwrap().count(), FIXTURES.len());
}

/// Creates the database of the newest schema. Run manually, once, with a new migration.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "creates the fixture of the newest schema, run manually"]
async fn create_fixture() {
    let backend = Sqlite::new();
    let store = backend.open().await;
    put(&*store, &key("a/1"), "first").await;
    put(&*store, &key("a/2"), "x").await;
    put(&*store, &key("a/1"), "second").await;
    let change = portico_store::Change::Put(value_with_owners(&key("b/3"), "owned", &["uid-1"]));
    let txn = portico_store::Txn::single(key("b/3"), portico_store::Precondition::Absent, change);
    commit(&*store, txn).await.unwrap();
    delete(&*store, &key("a/2")).await;
    store.close().await;
    let newest = FIXTURES.last().unwrap();
    std::fs::create_dir_all(testdata()).unwrap();
    std::fs::copy(backend.path(), testdata().join(newest)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn databases_of_earlier_versions_are_opened_read_written_and_watched() {
    for name in FIXTURES {
        let backend = Sqlite::new();
        std::fs::create_dir_all(backend.path().parent().unwrap()).unwrap();
        std::fs::copy(testdata().join(name), backend.path()).unwrap();
        let store = backend.open().await;
        assert_eq!((store.revision(), store.identity().epoch), (6, 1), "{name}");
        let snapshot = store.snapshot(&config_maps()).await.unwrap();
        assert_eq!(lines(snapshot.iter()), ["a/1@4=second", "b/3@5=owned"]);
        assert_eq!(store.dependents("uid-1").await.unwrap(), [key("b/3")]);
        let past = ListAt {
            scope: Scope::all(&config_maps()),
            revision: 3,
            after: None,
            limit: None,
            exact_count: true,
        };
        assert_eq!(lines(&store.list_at(past).await.unwrap().records), ["a/1@2=first", "a/2@3=x"]);
        let mut watch = store.watch(Scope::all(&config_maps()), 2).unwrap();
        put(&*store, &key("a/1"), "third").await;
        let events = ["Added a/2@3", "Modified a/1@4", "Added b/3@5", "Deleted a/2@6", "Modified a/1@7"];
        assert_eq!(event_lines(&take(&mut watch, 5).await), events);
        store.close().await;
        drop(store);
        let examined = Doctor::new(backend.path(), &MetadataIndexer).examine().await.unwrap();
        assert!(examined.is_sound(), "{:?}", examined.findings);
    }
}
