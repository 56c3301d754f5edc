//! Tests of a database that vanishes, is behind, or has many commits of other processes.

use std::time::Duration;

use portico_store::{Change, EventType, Expect, Scope, StoreError, Txn, TxnError, WatchError};

use portico_tests::{PostgresServer, until};

use crate::harness::*;
use crate::postgres::Postgres;

fn is_away<T>(read: &Result<T, StoreError>) -> bool {
    matches!(read, Err(StoreError::Unavailable(_)))
}

async fn a_database_that_vanishes_fails_reads_and_writes_in_time_and_is_found_again_at_once() {
    let Some(database) = Postgres::direct() else { return };
    let wire = database.server().wire().await;
    let process = database.process_with(database.settings_over(&wire)).await;
    let store = &*process.store;
    let first = put(store, &key("a/1"), "1").await;
    put(store, &key("a/1"), "2").await;
    let read = async || store.get_at(&key("a/1"), first).await;
    // As many reads as there are connections, which stay in the pool.
    let before = futures::future::join_all((0..4).map(|_| read())).await;
    assert!(before.iter().all(Result::is_ok));
    wire.hold();
    let write = async { commit(store, Txn::create(key("a/2"), value(&key("a/2"), "1"))).await };
    let reads = async {
        // More reads than there are connections: they must not wait for permits that are never returned.
        let reads = futures::future::join_all((0..12).map(|_| read())).await;
        (reads, store.snapshot(&config_maps()).await)
    };
    let (written, (reads, snapshot)) = tokio::join!(write, reads);
    assert!(reads.iter().all(is_away) && is_away(&snapshot), "{reads:?}");
    assert!(matches!(written, Err(TxnError::Unknown(_) | TxnError::Unavailable(_))), "{written:?}");
    wire.mend();
    assert_eq!(text(&read().await.unwrap().unwrap()), "1");
    until("it is written again", async || {
        commit(store, Txn::create(key("a/3"), value(&key("a/3"), "1"))).await.is_ok()
    })
    .await;
    // Writes that were not acknowledged did not reach the database.
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    let names: Vec<_> = snapshot.iter().map(|record| record.key.path()).collect();
    assert_eq!(names, ["a/1", "a/3"]);
}

async fn a_process_that_has_fallen_behind_takes_up_large_writes_in_parts() {
    let Some(database) = Postgres::direct() else { return };
    let wire = database.server().wire().await;
    let writer = database.process(&|_| ()).await.store;
    let mut settings = database.settings_over(&wire);
    settings.follow_bytes = 2 << 20;
    let behind = database.process_with(settings).await;
    behind.store.snapshot(&config_maps()).await.unwrap();
    let mut watch = behind.store.watch(Scope::all(&config_maps()), behind.store.revision()).unwrap();
    wire.hold();
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
    wire.mend();
    let caught_up = tokio::time::timeout(PATIENCE, behind.store.wait_for(writer.revision())).await;
    caught_up.expect("it takes up what was written").unwrap();
    assert_eq!(behind.tasks.failure().map(|failure| failure.to_string()), None);
    let snapshot = behind.store.snapshot(&config_maps()).await.unwrap();
    assert_eq!(snapshot.len(), 100);
    // Watchers miss no event: they receive all of them, or an error that they are too slow.
    let mut seen = 0;
    while seen < 100 {
        match watch.next().await {
            Ok(event) => {
                assert_eq!((event.revision(), event.record.key.clone()), written[seen]);
                seen += 1;
            }
            Err(WatchError::Lagged { revision }) => {
                watch = behind.store.watch(Scope::all(&config_maps()), revision).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

async fn who_is_a_moment_behind_what_is_forgotten_misses_nothing() {
    let Some(database) = Postgres::direct() else { return };
    let wire = database.server().wire().await;
    let writer = database.process(&|_| ()).await.store;
    let behind = database.process_with(database.settings_over(&wire)).await;
    put(&*writer, &key("a/1"), "0").await;
    let seen = behind.store.snapshot(&config_maps()).await.unwrap().revision();
    let mut watch = behind.store.watch(Scope::all(&config_maps()), seen).unwrap();
    wire.hold();
    for n in 1..20 {
        put(&*writer, &key("a/1"), &n.to_string()).await;
    }
    put(&*writer, &key("a/2"), "1").await;
    delete(&*writer, &key("a/2")).await;
    let now = writer.revision();
    assert_eq!(writer.compact(now).await.unwrap(), now);
    wire.mend();
    let events = take(&mut watch, 21).await;
    assert_eq!(events.last().unwrap().event_type, EventType::Deleted);
    assert!(events.iter().take(19).all(|event| event.previous.is_some()), "with the states before");
    assert_eq!(behind.tasks.failure().map(|failure| failure.to_string()), None);
    // History is compacted for all processes, and deleted later.
    until("it is forgotten", async || behind.store.compacted() == now).await;
    let past = behind.store.get_at(&key("a/1"), now - 5).await;
    assert!(matches!(past, Err(StoreError::Compacted { .. })), "{past:?}");
    until("it is swept", async || database.psql("SELECT revision FROM swept") == now.to_string()).await;
    assert_eq!(database.psql("SELECT count(*) FROM log"), "1");
}

async fn who_is_behind_what_is_gone_ends() {
    let Some(database) = Postgres::direct() else { return };
    let wire = database.server().wire().await;
    let mut settings = database.settings();
    settings.sweep_delay = Duration::ZERO;
    let writer = database.process_with(settings).await.store;
    let behind = database.process_with(database.settings_over(&wire)).await;
    put(&*writer, &key("a/1"), "0").await;
    behind.store.snapshot(&config_maps()).await.unwrap();
    wire.hold();
    put(&*writer, &key("a/1"), "1").await;
    let now = put(&*writer, &key("a/1"), "2").await;
    writer.compact(now).await.unwrap();
    until("it is swept", async || database.psql("SELECT revision FROM swept") == now.to_string()).await;
    wire.mend();
    let failure = tokio::time::timeout(PATIENCE, behind.tasks.failed()).await.unwrap();
    assert!(failure.to_string().contains("were compacted before this process read them"), "{failure}");
}

async fn a_standby_is_refused_and_one_that_is_behind_is_not_read() {
    let Some(primary) = PostgresServer::start() else { return };
    let (database, standby) = (Postgres::of(&primary), primary.standby());
    let wire = primary.wire().await;
    wire.lead_to(&standby.socket());
    let mut settings = database.settings_over(&wire);
    settings.connect_timeout = Duration::from_secs(1);
    let refused = database.try_open(settings, settings_at(""), portico_store::Seal::none());
    let refused = refused.await.err().unwrap().to_string();
    assert!(refused.contains("the server is a standby"), "{refused}");

    // The address leads to the primary, then to a standby that is behind, then to the primary again.
    wire.lead_to(&primary.socket());
    let process = database.process_with(database.settings_over(&wire)).await;
    let store = &*process.store;
    standby.psql("postgres", "SELECT pg_wal_replay_pause()");
    until("it is paused", async || {
        standby.psql("postgres", "SELECT pg_get_wal_replay_pause_state()").trim() == "paused"
    })
    .await;
    let shown = put(store, &key("a/1"), "1").await;
    put(store, &key("a/1"), "2").await;
    wire.lead_to(&standby.socket());
    database.cut();
    until("the standby is met", async || store.get_at(&key("a/1"), shown).await.is_err()).await;
    for _ in 0..5 {
        let past = store.get_at(&key("a/1"), shown).await;
        assert!(is_away(&past), "{past:?}");
        let current = store.snapshot(&config_maps()).await;
        assert!(is_away(&current), "{current:?}");
    }
    let change = Change::Put(value(&key("a/2"), "1"));
    let written = commit(store, Txn::one(key("a/2"), Expect::Any, change)).await;
    assert!(matches!(written, Err(TxnError::Unavailable(_))), "{written:?}");
    wire.lead_to(&primary.socket());
    until("it is written again", async || {
        let change = Change::Put(value(&key("a/2"), "1"));
        commit(store, Txn::one(key("a/2"), Expect::Any, change)).await.is_ok()
    })
    .await;
    assert_eq!(text(&store.get_at(&key("a/1"), shown).await.unwrap().unwrap()), "1");
    assert_eq!(process.tasks.failure().map(|failure| failure.to_string()), None);
}

crate::in_memory_and_past_it! {
    a_database_that_vanishes_fails_reads_and_writes_in_time_and_is_found_again_at_once,
    a_process_that_has_fallen_behind_takes_up_large_writes_in_parts,
    who_is_a_moment_behind_what_is_forgotten_misses_nothing,
    who_is_behind_what_is_gone_ends,
    a_standby_is_refused_and_one_that_is_behind_is_not_read,
}
