//! Tests of a database that vanishes, is behind, or has many commits of other processes.

use std::time::Duration;

use portico_store::{Change, EventType, Precondition, Scope, StoreError, Txn, TxnError, WatchError};

use portico_tests::{PostgresServer, wait_until};

use crate::harness::*;
use crate::postgres::Postgres;

fn is_unavailable<T>(read: &Result<T, StoreError>) -> bool {
    matches!(read, Err(StoreError::Unavailable(_)))
}

async fn requests_to_a_vanished_database_time_out_and_succeed_once_it_is_back() {
    let Some(database) = Postgres::direct() else { return };
    let wire = database.server().wire().await;
    let process = database.process_with(database.settings_via(&wire)).await;
    let store = &*process.store;
    let first = put(store, &key("a/1"), "1").await;
    put(store, &key("a/1"), "2").await;
    let read = async || store.get_at(&key("a/1"), first).await;
    // As many reads as there are connections, which stay in the pool.
    let before = futures::future::join_all((0..4).map(|_| read())).await;
    assert!(before.iter().all(Result::is_ok));
    wire.stall();
    let write = async { commit(store, Txn::create(key("a/2"), value(&key("a/2"), "1"))).await };
    let reads = async {
        // More reads than there are connections: they must not wait for permits that are never returned.
        let reads = futures::future::join_all((0..12).map(|_| read())).await;
        (reads, store.snapshot(&config_maps()).await)
    };
    let (written, (reads, snapshot)) = tokio::join!(write, reads);
    assert!(reads.iter().all(is_unavailable) && is_unavailable(&snapshot), "{reads:?}");
    assert!(matches!(written, Err(TxnError::InDoubt(_) | TxnError::Unavailable(_))), "{written:?}");
    wire.resume_new();
    assert_eq!(text(&read().await.unwrap().unwrap()), "1");
    wait_until("writes do not succeed again", async || {
        commit(store, Txn::create(key("a/3"), value(&key("a/3"), "1"))).await.is_ok()
    })
    .await;
    // Writes that were not acknowledged did not reach the database.
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    let names: Vec<_> = snapshot.iter().map(|record| record.key.path()).collect();
    assert_eq!(names, ["a/1", "a/3"]);
}

async fn a_process_that_is_behind_applies_large_commits_in_pages() {
    let Some(database) = Postgres::direct() else { return };
    let wire = database.server().wire().await;
    let writer = database.process(&|_| ()).await.store;
    let mut settings = database.settings_via(&wire);
    settings.follow_bytes = 2 << 20;
    let behind = database.process_with(settings).await;
    behind.store.snapshot(&config_maps()).await.unwrap();
    let mut watch = behind.store.watch(Scope::all(&config_maps()), behind.store.revision()).unwrap();
    wire.stall();
    // Digits in no order, because repeated text is compressed.
    let long: String = (0..125_000_u32).map(|n| format!("{:08x}", n.wrapping_mul(2_654_435_761))).collect();
    let create = async |n: usize| {
        let key = key(&format!("a/{n:03}"));
        (commit(&*writer, Txn::create(key.clone(), value(&key, &long))).await.unwrap().revision, key)
    };
    let mut written = Vec::new();
    for part in 0..10 {
        written.extend(futures::future::join_all((10 * part..10 * part + 10).map(create)).await);
    }
    // Concurrent writes may be committed in any order.
    written.sort();
    wire.resume_new();
    let caught_up = tokio::time::timeout(WAIT_LIMIT, behind.store.wait_for_revision(writer.revision())).await;
    caught_up.expect("the process does not catch up").unwrap();
    assert_eq!(behind.tasks.failure().map(|failure| failure.to_string()), None);
    let snapshot = behind.store.snapshot(&config_maps()).await.unwrap();
    assert_eq!(snapshot.len(), 100);
    // Watchers miss no event: they receive all of them, or an error that they are too slow.
    let mut received = 0;
    while received < 100 {
        match watch.next().await {
            Ok(event) => {
                assert_eq!((event.revision(), event.record.key.clone()), written[received]);
                received += 1;
            }
            Err(WatchError::Lagged { revision }) => {
                watch = behind.store.watch(Scope::all(&config_maps()), revision).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

async fn a_process_slightly_behind_the_compaction_misses_nothing() {
    let Some(database) = Postgres::direct() else { return };
    let wire = database.server().wire().await;
    let writer = database.process(&|_| ()).await.store;
    let behind = database.process_with(database.settings_via(&wire)).await;
    put(&*writer, &key("a/1"), "0").await;
    let initial_revision = behind.store.snapshot(&config_maps()).await.unwrap().revision();
    let mut watch = behind.store.watch(Scope::all(&config_maps()), initial_revision).unwrap();
    wire.stall();
    for n in 1..20 {
        put(&*writer, &key("a/1"), &n.to_string()).await;
    }
    put(&*writer, &key("a/2"), "1").await;
    delete(&*writer, &key("a/2")).await;
    let now = writer.revision();
    assert_eq!(writer.compact(now).await.unwrap(), now);
    wire.resume_new();
    let events = take(&mut watch, 21).await;
    assert_eq!(events.last().unwrap().event_type, EventType::Deleted);
    assert!(events.iter().take(19).all(|event| event.previous.is_some()), "a previous state is missing");
    assert_eq!(behind.tasks.failure().map(|failure| failure.to_string()), None);
    // History is compacted for all processes, and deleted later.
    wait_until("history is not compacted", async || behind.store.compacted() == now).await;
    let past = behind.store.get_at(&key("a/1"), now - 5).await;
    assert!(matches!(past, Err(StoreError::Compacted { .. })), "{past:?}");
    wait_until("the log is not swept", async || {
        database.psql("SELECT revision FROM swept") == now.to_string()
    })
    .await;
    assert_eq!(database.psql("SELECT count(*) FROM log"), "1");
}

async fn a_process_behind_the_sweep_ends() {
    let Some(database) = Postgres::direct() else { return };
    let wire = database.server().wire().await;
    let mut settings = database.settings();
    settings.sweep_delay = Duration::ZERO;
    let writer = database.process_with(settings).await.store;
    let behind = database.process_with(database.settings_via(&wire)).await;
    put(&*writer, &key("a/1"), "0").await;
    behind.store.snapshot(&config_maps()).await.unwrap();
    wire.stall();
    put(&*writer, &key("a/1"), "1").await;
    let now = put(&*writer, &key("a/1"), "2").await;
    writer.compact(now).await.unwrap();
    wait_until("the log is not swept", async || {
        database.psql("SELECT revision FROM swept") == now.to_string()
    })
    .await;
    wire.resume_new();
    let failure = tokio::time::timeout(WAIT_LIMIT, behind.tasks.failed()).await.unwrap();
    assert!(failure.to_string().contains("were compacted before this process read them"), "{failure}");
}

async fn a_standby_is_rejected_and_not_read_if_it_is_behind() {
    let Some(primary) = PostgresServer::start() else { return };
    let (database, standby) = (Postgres::create(&primary), primary.start_standby());
    let wire = primary.wire().await;
    wire.retarget(&standby.socket());
    let mut settings = database.settings_via(&wire);
    settings.connect_timeout = Duration::from_secs(1);
    let refused = database.try_open(settings, settings_at(""), portico_store::Seal::none());
    let refused = refused.await.err().unwrap().to_string();
    assert!(refused.contains("the server is a standby"), "{refused}");

    // The address leads to the primary, then to a standby that is behind, then to the primary again.
    wire.retarget(&primary.socket());
    let process = database.process_with(database.settings_via(&wire)).await;
    let store = &*process.store;
    standby.psql("postgres", "SELECT pg_wal_replay_pause()");
    wait_until("the standby is not paused", async || {
        standby.psql("postgres", "SELECT pg_get_wal_replay_pause_state()").trim() == "paused"
    })
    .await;
    let first_revision = put(store, &key("a/1"), "1").await;
    put(store, &key("a/1"), "2").await;
    wire.retarget(&standby.socket());
    database.terminate_connections();
    wait_until("reads do not reach the standby", async || {
        store.get_at(&key("a/1"), first_revision).await.is_err()
    })
    .await;
    for _ in 0..5 {
        let past = store.get_at(&key("a/1"), first_revision).await;
        assert!(is_unavailable(&past), "{past:?}");
        let current = store.snapshot(&config_maps()).await;
        assert!(is_unavailable(&current), "{current:?}");
    }
    let change = Change::Put(value(&key("a/2"), "1"));
    let written = commit(store, Txn::single(key("a/2"), Precondition::Any, change)).await;
    assert!(matches!(written, Err(TxnError::Unavailable(_))), "{written:?}");
    wire.retarget(&primary.socket());
    wait_until("writes do not succeed again", async || {
        let change = Change::Put(value(&key("a/2"), "1"));
        commit(store, Txn::single(key("a/2"), Precondition::Any, change)).await.is_ok()
    })
    .await;
    assert_eq!(text(&store.get_at(&key("a/1"), first_revision).await.unwrap().unwrap()), "1");
    assert_eq!(process.tasks.failure().map(|failure| failure.to_string()), None);
}

crate::cached_and_uncached! {
    requests_to_a_vanished_database_time_out_and_succeed_once_it_is_back,
    a_process_that_is_behind_applies_large_commits_in_pages,
    a_process_slightly_behind_the_compaction_misses_nothing,
    a_process_behind_the_sweep_ends,
    a_standby_is_rejected_and_not_read_if_it_is_behind,
}
