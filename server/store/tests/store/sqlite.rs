//! Tests of SQLite only: file, lock and schema.

use std::os::unix::fs::PermissionsExt;

use portico_store::{OpenError, Txn};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};

use crate::harness::*;

async fn raw_connection(backend: &Sqlite) -> SqliteConnection {
    SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap()
}

#[tokio::test]
async fn sqlite_has_the_fix_against_losing_the_log() {
    let mut memory = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    let version: String = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut memory).await.unwrap();
    let numbers: Vec<u32> = version.split('.').map(|part| part.parse().unwrap()).collect();
    assert!(numbers >= vec![3, 51, 3], "{version}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_a_served_database_is_rejected_with_its_process_id() {
    let backend = Sqlite::new();
    let store = backend.open().await;
    let Err(OpenError::InUse { path, pid }) = backend.try_open(&|_| ()).await else {
        panic!("the database was opened twice")
    };
    assert_eq!((path, pid), (backend.path(), std::process::id().to_string()));
    store.close().await;
    backend.open().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_schema_is_rejected_with_both_versions() {
    let backend = Sqlite::new();
    backend.open().await.close().await;
    let mut connection = raw_connection(&backend).await;
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (77, 'later', 1, x'00', 0)";
    sqlx::query(newer).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let Err(error) = backend.try_open(&|_| ()).await else { panic!("the database was opened") };
    assert!(matches!(error, OpenError::TooNew { found: 77, known: 4, .. }), "{error}");
    assert!(
        error
            .to_string()
            .ends_with("has schema version 77, this portico supports up to 4: use a newer portico")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_not_a_database_is_rejected() {
    let backend = Sqlite::new();
    std::fs::create_dir_all(backend.path().parent().unwrap()).unwrap();
    std::fs::write(backend.path(), "text instead of a database; ".repeat(30)).unwrap();
    assert!(matches!(backend.try_open(&|_| ()).await, Err(OpenError::Database { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_are_private_and_vacuum_is_incremental() {
    let backend = Sqlite::new();
    let store = backend.open().await;
    put(&*store, &key("a/1"), "x").await;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = backend.path().parent().unwrap().to_owned();
    assert_eq!(mode(&folder), 0o700);
    for name in ["portico.db", "portico.db-wal", "portico.db-shm", "portico.db.lock", "portico.db.mark"] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
    let mut connection = raw_connection(&backend).await;
    for (pragma, expected) in [("PRAGMA auto_vacuum", "2"), ("PRAGMA journal_mode", "wal")] {
        let row = sqlx::query(pragma).fetch_one(&mut connection).await.unwrap();
        let found =
            row.try_get::<i64, _>(0).map(|number| number.to_string()).or_else(|_| row.try_get(0)).unwrap();
        assert_eq!(found, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_delays_neither_compaction_nor_writes() {
    let backend = Sqlite::new();
    let store = backend.open().await;
    for n in 0..300 {
        put(&*store, &key("a/1"), &format!("{n}{}", "x".repeat(20_000))).await;
    }
    // The reader uses an old state, so the write-ahead log cannot be cut.
    let mut reader = raw_connection(&backend).await;
    sqlx::query("BEGIN").execute(&mut reader).await.unwrap();
    let _read: i64 = sqlx::query_scalar("SELECT count(*) FROM log").fetch_one(&mut reader).await.unwrap();
    put(&*store, &key("a/1"), "last").await;
    // Without the fix, the writer waited five seconds for the reader at each checkpoint.
    let compacted = tokio::time::timeout(std::time::Duration::from_secs(3), store.compact(store.revision()));
    assert_eq!(compacted.await.expect("compaction waits for the reader").unwrap(), store.revision());
    put(&*store, &key("a/1"), "after").await;
    sqlx::query("COMMIT").execute(&mut reader).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_checks_writes_and_a_store_with_a_different_state_ends() {
    let backend = Sqlite::new();
    let store = backend.open().await;
    let revision = put(&*store, &key("a/1"), "x").await;
    let mut watch = store.watch(portico_store::Scope::all(&config_maps()), revision).unwrap();
    let mut connection = raw_connection(&backend).await;
    // Changes the database outside of the store; a process that respects the lock cannot do this.
    sqlx::query("DELETE FROM log WHERE name = '1'").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let update = Txn::update(key("a/1"), revision, value(&key("a/1"), "y"));
    assert!(matches!(commit(&*store, update).await, Err(portico_store::TxnError::InDoubt(_))));
    store.wait_for_revision(i64::MAX).await.unwrap_err();
    assert!(matches!(watch.next().await, Err(portico_store::WatchError::Closed)));
    let late = commit(&*store, Txn::create(key("a/2"), value(&key("a/2"), "x"))).await;
    assert!(matches!(late, Err(portico_store::TxnError::Closed)));
    drop(store);
    let store = backend.open().await;
    assert_eq!(store.revision(), revision);
    assert!(store.snapshot(&config_maps()).await.unwrap().is_empty());
}
