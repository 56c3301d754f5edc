//! Tests of a full database: deletions succeed and other writes are rejected, until space is available.

use std::fs;
use std::time::Duration;

use portico_store::{Change, ListAt, OpenError, Precondition, Settings, Store, StoreError, Txn, TxnError};

use crate::harness::*;

/// Maximum size of the database in bytes.
const LIMIT: u64 = 2 << 20;
const RESERVE: u64 = 1 << 20;

async fn create(store: &dyn Store, n: usize) -> Result<i64, TxnError> {
    let key = key(&format!("a/{n:04}"));
    let created = commit(store, Txn::create(key.clone(), value(&key, &"x".repeat(20_000)))).await;
    created.map(|created| created.revision)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_database_accepts_deletions_and_recovers() {
    let backend = Sqlite::new();
    let store = backend
        .open_with(&|settings| {
            settings.max_file_bytes = Some(LIMIT);
            settings.reserve_bytes = RESERVE;
            settings.compaction_interval = Duration::from_millis(20);
        })
        .await;
    let mut created = 0;
    let full = loop {
        match create(&*store, created).await {
            Ok(_) => created += 1,
            Err(error) => break error,
        }
    };
    let message = "the database or its disk is full: ";
    assert!(matches!(full, TxnError::Full(_)) && full.to_string().starts_with(message), "{full}");
    assert!(created > 20, "{created}");
    assert!(store.condition().full.is_some());
    // An update would grow the database: only writes that free space succeed.
    let grown = key("a/0000");
    let update = Txn::single(grown.clone(), Precondition::Exists, Change::Put(value(&grown, "y")));
    let refused = commit(&*store, update).await.unwrap_err();
    assert!(refused.to_string().ends_with("; only deletions are written"), "{refused}");
    // A client that lists and then watches misses no deletion in between, although no history is stored: the watch is rejected if
    // the compaction has passed the list.
    let listed = store.revision();
    delete(&*store, &key("a/0000")).await;
    match store.watch(portico_store::Scope::all(&config_maps()), listed) {
        Ok(mut watch) => assert_eq!(watch.next().await.unwrap().record.key, key("a/0000")),
        Err(error) => assert!(matches!(error, portico_store::WatchError::Compacted { .. }), "{error}"),
    }
    for n in 1..created {
        delete(&*store, &key(&format!("a/{n:04}"))).await;
    }
    assert!(store.snapshot(&config_maps()).await.unwrap().is_empty());
    // History still fills the database; after a compaction all writes succeed.
    store.compact(store.revision()).await.unwrap();
    let recovered = async {
        while store.condition().full.is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, recovered).await.expect("the store stays in delete-only mode");
    create(&*store, created).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_succeeds_as_the_first_write_to_a_full_database() {
    let backend = Sqlite::new();
    let store = backend.open().await;
    for n in 0..60 {
        create(&*store, n).await.unwrap();
    }
    store.close().await;
    drop(store);
    // Opened with a limit below the current size: the next write, a deletion, finds no space.
    let store = backend.open_with(&|settings| settings.max_file_bytes = Some(4096)).await;
    let deletion = async |n: usize| {
        let key = key(&format!("a/{n:04}"));
        commit(
            &*store,
            Txn::single(key.clone(), Precondition::Exists, Change::Delete(value(&key, &"x".repeat(90_000)))),
        )
        .await
    };
    for n in 0..10 {
        deletion(n).await.unwrap();
    }
    assert!(matches!(create(&*store, 100).await, Err(TxnError::Full(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_read_from_the_database_while_deletions_discard_history() {
    const OBJECTS: usize = 60;
    let backend = Sqlite::new();
    let store = backend.open().await;
    for n in 0..OBJECTS {
        create(&*store, n).await.unwrap();
    }
    store.close().await;
    drop(store);
    let store = backend
        .open_with(&|settings| {
            settings.cache_max_bytes = Some(1);
            settings.max_file_bytes = Some(4096);
        })
        .await;
    let deletions = async {
        for n in 0..OBJECTS - 1 {
            delete(&*store, &key(&format!("a/{n:04}"))).await;
        }
    };
    let lists = async {
        let (mut remaining, mut successful_lists) = (OBJECTS, 0);
        while remaining > 1 {
            let revision = store.current_state(&config_maps()).await.unwrap().revision();
            let scope = portico_store::Scope::all(&config_maps());
            let query = ListAt { scope, revision, after: None, limit: None, exact_count: false };
            match store.list_at(query).await {
                Ok(page) => {
                    assert!(page.records.len() <= remaining);
                    remaining = page.records.len();
                    successful_lists += usize::from(remaining > 1);
                }
                // A deletion occurred between the two calls.
                Err(StoreError::Compacted { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        successful_lists
    };
    let (_, answered) = tokio::join!(deletions, lists);
    assert!(answered > 0, "no list succeeded during deletions");
    assert!(store.condition().full.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_fails_keeps_the_reserve() {
    let backend = Sqlite::new();
    let tune = |settings: &mut Settings| settings.reserve_bytes = RESERVE;
    let store = backend.try_open(&tune).await.unwrap();
    put(&store, &key("a/1"), "x").await;
    store.close().await;
    drop(store);
    let reserved = || fs::metadata(backend.path().with_file_name("portico.db.reserve")).unwrap().len();
    assert_eq!(reserved(), RESERVE);
    let mark = backend.path().with_file_name("portico.db.mark");
    let right = fs::read_to_string(&mark).unwrap();
    fs::write(&mark, right.replace(r#""storeId":""#, r#""storeId":"another "#)).unwrap();
    assert!(matches!(backend.try_open(&tune).await, Err(OpenError::Replaced { .. })));
    assert_eq!(reserved(), RESERVE);
    fs::write(&mark, right).unwrap();
    backend.try_open(&tune).await.unwrap();
}
