//! Tests of several processes that write to one database: each is represented by a separate store.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use portico_store::{Event, EventType, ListAt, Scope, StoreError, Txn, TxnError, WatchError};

use crate::harness::*;
use crate::postgres::{Postgres, Process};

/// Number of concurrent processes.
const PROCESSES: usize = 3;

async fn processes(database: &Postgres<'_>) -> Vec<Process> {
    let mut all = Vec::new();
    for _ in 0..PROCESSES {
        all.push(database.process(&|_| ()).await);
    }
    all
}

/// Creates tests of processes that share a database, if PostgreSQL is installed.
macro_rules! shared_database_tests {
    ($($name:ident),* $(,)?) => {
        shared_database_tests!(direct: std::future::ready(Postgres::direct()), with_full_cache, $($name),*);
        shared_database_tests!(pooled: Postgres::pooled(), with_full_cache, $($name),*);
        shared_database_tests!(direct_uncached: std::future::ready(Postgres::direct()), without_cache, $($name),*);
        shared_database_tests!(pooled_uncached: Postgres::pooled(), without_cache, $($name),*);
    };
    ($variant_name:ident: $new:expr, $run:ident, $($name:ident),*) => {
        mod $variant_name {
            use super::*;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    if let Some(database) = $new.await {
                        $run(super::$name(&database)).await;
                    }
                }
            )*
        }
    };
}

shared_database_tests! {
    a_write_is_immediately_visible_to_every_process,
    a_request_queries_the_revision_again_after_a_conflicting_write,
    one_of_several_updates_of_a_revision_by_different_processes_succeeds,
    every_process_sees_the_same_log,
    a_load_during_writes_of_other_processes_misses_no_change,
    history_compacted_by_one_process_is_compacted_for_all,
    acknowledged_writes_survive_lost_connections_exactly_once,
    a_database_that_has_lost_writes_begins_a_new_epoch,
    concurrently_started_processes_share_one_store,
    only_txns_that_exceed_limits_of_the_database_are_rejected,
}

async fn a_write_is_immediately_visible_to_every_process(database: &Postgres<'_>) {
    let all = processes(database).await;
    for round in 0..50 {
        let (writer, text) = (&all[round % PROCESSES], round.to_string());
        let revision = put(&*writer.store, &key("a/1"), &text).await;
        for reader in &all {
            let snapshot = reader.store.snapshot(&config_maps()).await.unwrap();
            assert_eq!(lines(snapshot.iter()), [format!("a/1@{revision}={text}")]);
        }
    }
}

async fn a_request_queries_the_revision_again_after_a_conflicting_write(database: &Postgres<'_>) {
    let all = processes(database).await;
    check_revision_query_after_conflict(&*all[0].store, &*all[1].store).await;
}

async fn one_of_several_updates_of_a_revision_by_different_processes_succeeds(database: &Postgres<'_>) {
    let all = processes(database).await;
    put(&*all[0].store, &key("a/1"), "0").await;
    let increment = async |process: &Process| {
        loop {
            let snapshot = process.store.snapshot(&config_maps()).await.unwrap();
            let current = snapshot.get(&key("a/1")).unwrap().clone();
            let next: u32 = text(&current).parse::<u32>().unwrap() + 1;
            let update = Txn::update(key("a/1"), current.revision, value(&key("a/1"), &next.to_string()));
            match commit(&*process.store, update).await {
                Ok(_) => return,
                Err(TxnError::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    let callers = (0..60).map(|n| increment(&all[n % PROCESSES]));
    futures::future::join_all(callers).await;
    let snapshot = all[1].store.snapshot(&config_maps()).await.unwrap();
    assert_eq!(text(snapshot.get(&key("a/1")).unwrap()), "60");
}

/// Creates, updates and deletes in every process concurrently. Returns the number of changes.
async fn storm(all: &[Process], rounds: usize) -> usize {
    let caller = async |caller: usize| {
        let store = &*all[caller % PROCESSES].store;
        for n in 0..rounds {
            let key = key(&format!("a/{caller}-{n}"));
            put(store, &key, "1").await;
            put(store, &key, "2").await;
            if n % 2 == 0 {
                delete(store, &key).await;
            }
        }
    };
    futures::future::join_all((0..4 * PROCESSES).map(caller)).await;
    4 * PROCESSES * (2 * rounds + rounds.div_ceil(2))
}

async fn every_process_sees_the_same_log(database: &Postgres<'_>) {
    let all = processes(database).await;
    let watches: Vec<_> =
        all.iter().map(|process| process.store.watch(Scope::all(&config_maps()), 1).unwrap()).collect();
    let changes = storm(&all, 20).await;
    let mut logs = Vec::new();
    for mut watch in watches {
        logs.push(take(&mut watch, changes).await);
    }
    for log in &logs {
        assert!(log.windows(2).all(|pair| pair[0].revision() < pair[1].revision()));
        assert_eq!(event_lines(log), event_lines(&logs[0]));
        assert_consistent(log);
    }
    let mut states = Vec::new();
    for process in &all {
        states.push(lines(process.store.snapshot(&config_maps()).await.unwrap().iter()));
    }
    assert!(states.iter().all(|state| *state == states[0]));
}

/// Checks that the previous state of each event is the result of the events before it.
fn assert_consistent(log: &[Arc<Event>]) {
    let mut states: HashMap<String, i64> = HashMap::new();
    for event in log {
        let path = event.record.key.path();
        let before = event.previous.as_ref().map(|previous| previous.revision);
        assert_eq!(before, states.get(path).copied(), "{path}@{}", event.revision());
        match event.event_type {
            EventType::Deleted => drop(states.remove(path)),
            _ => drop(states.insert(path.to_owned(), event.revision())),
        }
    }
}

async fn a_load_during_writes_of_other_processes_misses_no_change(database: &Postgres<'_>) {
    let all = processes(database).await;
    for round in 0..10 {
        let new_process = database.process(&|_| ()).await;
        let resource = config_maps();
        let (_, read) = tokio::join!(storm(&all, 4), new_process.store.snapshot(&resource));
        let (loaded, now) = (read.unwrap(), new_process.store.snapshot(&config_maps()).await.unwrap());
        assert!(loaded.revision() <= now.revision());
        let expected = all[0].store.snapshot(&config_maps()).await.unwrap();
        assert_eq!(lines(now.iter()), lines(expected.iter()), "round {round}");
        new_process.store.close().await;
    }
}

async fn history_compacted_by_one_process_is_compacted_for_all(database: &Postgres<'_>) {
    let all = processes(database).await;
    let first = put(&*all[0].store, &key("a/1"), "1").await;
    let second = put(&*all[0].store, &key("a/1"), "2").await;
    let reader = &*all[1].store;
    let at = async |revision| reader.get_at(&key("a/1"), revision).await;
    reader.snapshot(&config_maps()).await.unwrap();
    assert_eq!(text(&at(first).await.unwrap().unwrap()), "1");
    all[0].store.compact(second).await.unwrap();
    assert!(matches!(at(first).await, Err(StoreError::Compacted { .. })));
    let scope = Scope::all(&config_maps());
    let past = ListAt { scope: scope.clone(), revision: first, after: None, limit: None, exact_count: true };
    assert!(matches!(reader.list_at(past).await, Err(StoreError::Compacted { .. })));
    assert!(matches!(reader.watch(scope, first), Err(WatchError::Compacted { .. })));
    assert_eq!(text(&at(second).await.unwrap().unwrap()), "2");
}

async fn acknowledged_writes_survive_lost_connections_exactly_once(database: &Postgres<'_>) {
    let all = processes(database).await;
    let mut watch = all[0].store.watch(Scope::all(&config_maps()), 1).unwrap();
    let writer = async |caller: usize| {
        let store = &*all[caller % PROCESSES].store;
        let mut written = Vec::new();
        for n in 0..150 {
            let key = key(&format!("a/{caller}-{n}"));
            match commit(store, Txn::create(key.clone(), value(&key, "1"))).await {
                Ok(committed) => written.push((key.path().to_owned(), committed.revision)),
                Err(TxnError::Unavailable(_) | TxnError::InDoubt(_)) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
        written
    };
    let cutter = async {
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            database.terminate_connections();
        }
    };
    let writers = futures::future::join_all((0..2 * PROCESSES).map(writer));
    let (written, ()) = tokio::join!(writers, cutter);
    let written: HashMap<String, i64> = written.into_iter().flatten().collect();
    assert!(written.len() > 100, "only {} writes were acknowledged", written.len());
    let snapshot = all[1].store.snapshot(&config_maps()).await.unwrap();
    for (path, revision) in &written {
        assert_eq!(snapshot.get_path(path).map(|record| record.revision), Some(*revision), "{path}");
    }
    // Each object exists once: the events of the watch match the objects.
    let log = take(&mut watch, snapshot.len()).await;
    let events: HashMap<&str, i64> = log.iter().map(|e| (e.record.key.path(), e.revision())).collect();
    assert_eq!(events.len(), snapshot.len());
    assert!(snapshot.iter().all(|record| events[record.key.path()] == record.revision));
}

async fn a_database_that_has_lost_writes_begins_a_new_epoch(database: &Postgres<'_>) {
    // Simulates a failover to a standby that had not received the last write: without a later write, with as many
    // later writes, or with more; and possibly without a lost connection.
    for (at, (moved, is_cut)) in (1..).zip([(-1, true), (0, true), (0, false), (5, true), (5, false)]) {
        let (first, second) = (database.process(&|_| ()).await, database.process(&|_| ()).await);
        let first_revision = put(&*first.store, &key("a/1"), "kept").await;
        let lost_revision = put(&*first.store, &key("a/2"), "lost").await;
        second.store.snapshot(&config_maps()).await.unwrap();
        database.psql(&format!(
            "BEGIN; DELETE FROM log WHERE revision = {lost_revision}; UPDATE meta SET revision = {lost_revision} + {moved}, commit_id = 7; COMMIT"
        ));
        if is_cut {
            database.terminate_connections();
        }
        for process in [&first, &second] {
            let failed = process.tasks.failed();
            let failure = tokio::time::timeout(WAIT_LIMIT, failed).await.unwrap();
            assert!(failure.to_string().contains("new epoch"), "{failure}");
        }
        let reopened = database.process(&|_| ()).await;
        assert_eq!(reopened.store.identity().epoch, 1 + at);
        assert!(reopened.store.revision() > lost_revision);
        let watch = reopened.store.watch(Scope::all(&config_maps()), lost_revision);
        assert!(matches!(watch, Err(WatchError::Compacted { .. })));
        let snapshot = reopened.store.snapshot(&config_maps()).await.unwrap();
        assert_eq!(lines(snapshot.iter()), [format!("a/1@{first_revision}=kept")]);
        reopened.store.close().await;
    }
}

async fn concurrently_started_processes_share_one_store(database: &Postgres<'_>) {
    let all = futures::future::join_all((0..8).map(|_| database.process(&|_| ()))).await;
    let first = all[0].store.identity().clone();
    assert!(all.iter().all(|process| *process.store.identity() == first));
    put(&*all[7].store, &key("a/1"), "1").await;
    assert_eq!(all[0].store.snapshot(&config_maps()).await.unwrap().len(), 1);
}

async fn only_txns_that_exceed_limits_of_the_database_are_rejected(database: &Postgres<'_>) {
    let process = database.process(&|_| ()).await;
    let store = &*process.store;
    // Digits in no order, because repeated text is compressed.
    let long: String = (0..400).map(|n| format!("{:08x}", 2_654_435_761_u32.wrapping_mul(n))).collect();
    let long_name = format!("a/{long}");
    let create = |path: &str, owners: &[&str]| {
        let key = key(path);
        Txn::create(key.clone(), value_with_owners(&key, "1", owners))
    };
    let create_one = async |n: usize| {
        let path = if n == 7 { long_name.clone() } else { format!("a/{n}") };
        commit(store, create(&path, &[])).await
    };
    let results = futures::future::join_all((0..20).map(create_one)).await;
    for (n, result) in results.into_iter().enumerate() {
        match n {
            7 => assert!(matches!(result, Err(TxnError::TooLarge(_))), "{result:?}"),
            _ => drop(result.unwrap()),
        }
    }
    // Other Txns of the same call are not rejected, and the rejected ones are not sent to the database.
    let longest_name = &long[..2_500];
    let together = [
        create("b/1", &[]),
        create(&long_name, &[]),
        create("b/2", &["o", &long]),
        create("b/3", &[longest_name]),
        create(&format!("b/{longest_name}"), &[]),
    ];
    let results = store.commit(together.to_vec()).await;
    let refused: Vec<bool> = results.iter().map(|r| matches!(r, Err(TxnError::TooLarge(_)))).collect();
    assert_eq!(refused, [false, true, true, false, false], "{results:?}");
    assert_eq!(process.metric("portico_store_commit_failures_total"), "0");
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), 22);
    assert_eq!(store.dependents(longest_name).await.unwrap(), [key("b/3")]);
}
