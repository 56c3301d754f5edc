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
macro_rules! shared {
    ($($name:ident),* $(,)?) => {
        shared!(direct: std::future::ready(Postgres::direct()), in_memory, $($name),*);
        shared!(behind_a_pooler: Postgres::pooled(), in_memory, $($name),*);
        shared!(direct_past_the_cache: std::future::ready(Postgres::direct()), past_the_cache, $($name),*);
        shared!(behind_a_pooler_past_the_cache: Postgres::pooled(), past_the_cache, $($name),*);
    };
    ($place:ident: $new:expr, $run:ident, $($name:ident),*) => {
        mod $place {
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

shared! {
    a_write_is_read_at_once_by_every_process,
    a_request_asks_again_after_a_write_that_others_were_faster_than,
    of_updates_of_one_revision_by_several_processes_one_wins,
    every_process_sees_the_same_log,
    a_resource_that_is_loaded_while_others_write_misses_nothing,
    history_that_one_process_forgets_is_gone_for_all,
    writes_survive_lost_connections_and_none_is_there_twice,
    a_database_that_has_lost_writes_begins_a_new_epoch,
    processes_that_start_at_once_share_one_store,
    what_the_database_cannot_hold_is_refused_alone,
}

async fn a_write_is_read_at_once_by_every_process(database: &Postgres<'_>) {
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

async fn a_request_asks_again_after_a_write_that_others_were_faster_than(database: &Postgres<'_>) {
    let all = processes(database).await;
    a_request_asks_again_after_a_refused_write(&*all[0].store, &*all[1].store).await;
}

async fn of_updates_of_one_revision_by_several_processes_one_wins(database: &Postgres<'_>) {
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
        assert_eq!(reported(log), reported(&logs[0]));
        follows_from_itself(log);
    }
    let mut states = Vec::new();
    for process in &all {
        states.push(lines(process.store.snapshot(&config_maps()).await.unwrap().iter()));
    }
    assert!(states.iter().all(|state| *state == states[0]));
}

/// Checks that the previous state of each event is the result of the events before it.
fn follows_from_itself(log: &[Arc<Event>]) {
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

async fn a_resource_that_is_loaded_while_others_write_misses_nothing(database: &Postgres<'_>) {
    let all = processes(database).await;
    for round in 0..10 {
        let late = database.process(&|_| ()).await;
        let resource = config_maps();
        let (_, read) = tokio::join!(storm(&all, 4), late.store.snapshot(&resource));
        let (seen, now) = (read.unwrap(), late.store.snapshot(&config_maps()).await.unwrap());
        assert!(seen.revision() <= now.revision());
        let expected = all[0].store.snapshot(&config_maps()).await.unwrap();
        assert_eq!(lines(now.iter()), lines(expected.iter()), "round {round}");
        late.store.close().await;
    }
}

async fn history_that_one_process_forgets_is_gone_for_all(database: &Postgres<'_>) {
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
    let past = ListAt { scope: scope.clone(), revision: first, after: None, limit: None, counted: true };
    assert!(matches!(reader.list_at(past).await, Err(StoreError::Compacted { .. })));
    assert!(matches!(reader.watch(scope, first), Err(WatchError::Compacted { .. })));
    assert_eq!(text(&at(second).await.unwrap().unwrap()), "2");
}

async fn writes_survive_lost_connections_and_none_is_there_twice(database: &Postgres<'_>) {
    let all = processes(database).await;
    let mut watch = all[0].store.watch(Scope::all(&config_maps()), 1).unwrap();
    let writer = async |caller: usize| {
        let store = &*all[caller % PROCESSES].store;
        let mut written = Vec::new();
        for n in 0..150 {
            let key = key(&format!("a/{caller}-{n}"));
            match commit(store, Txn::create(key.clone(), value(&key, "1"))).await {
                Ok(committed) => written.push((key.path().to_owned(), committed.revision)),
                Err(TxnError::Unavailable(_) | TxnError::Unknown(_)) => {
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
            database.cut();
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
    let shown: HashMap<&str, i64> = log.iter().map(|e| (e.record.key.path(), e.revision())).collect();
    assert_eq!(shown.len(), snapshot.len());
    assert!(snapshot.iter().all(|record| shown[record.key.path()] == record.revision));
}

async fn a_database_that_has_lost_writes_begins_a_new_epoch(database: &Postgres<'_>) {
    // Simulates a failover to a standby that had not received the last write: without a later write, with as many
    // later writes, or with more; and possibly without a lost connection.
    for (at, (moved, is_cut)) in (1..).zip([(-1, true), (0, true), (0, false), (5, true), (5, false)]) {
        let (first, second) = (database.process(&|_| ()).await, database.process(&|_| ()).await);
        let kept = put(&*first.store, &key("a/1"), "kept").await;
        let shown = put(&*first.store, &key("a/2"), "lost").await;
        second.store.snapshot(&config_maps()).await.unwrap();
        database.psql(&format!(
            "BEGIN; DELETE FROM log WHERE revision = {shown}; UPDATE meta SET revision = {shown} + {moved}, commit_id = 7; COMMIT"
        ));
        if is_cut {
            database.cut();
        }
        for process in [&first, &second] {
            let failed = process.tasks.failed();
            let failure = tokio::time::timeout(PATIENCE, failed).await.unwrap();
            assert!(failure.to_string().contains("new epoch"), "{failure}");
        }
        let again = database.process(&|_| ()).await;
        assert_eq!(again.store.identity().epoch, 1 + at);
        assert!(again.store.revision() > shown);
        let watch = again.store.watch(Scope::all(&config_maps()), shown);
        assert!(matches!(watch, Err(WatchError::Compacted { .. })));
        let snapshot = again.store.snapshot(&config_maps()).await.unwrap();
        assert_eq!(lines(snapshot.iter()), [format!("a/1@{kept}=kept")]);
        again.store.close().await;
    }
}

async fn processes_that_start_at_once_share_one_store(database: &Postgres<'_>) {
    let all = futures::future::join_all((0..8).map(|_| database.process(&|_| ()))).await;
    let first = all[0].store.identity().clone();
    assert!(all.iter().all(|process| *process.store.identity() == first));
    put(&*all[7].store, &key("a/1"), "1").await;
    assert_eq!(all[0].store.snapshot(&config_maps()).await.unwrap().len(), 1);
}

async fn what_the_database_cannot_hold_is_refused_alone(database: &Postgres<'_>) {
    let process = database.process(&|_| ()).await;
    let store = &*process.store;
    // Digits in no order, because repeated text is compressed.
    let long: String = (0..400).map(|n| format!("{:08x}", 2_654_435_761_u32.wrapping_mul(n))).collect();
    let long_name = format!("a/{long}");
    let create = |path: &str, owners: &[&str]| {
        let key = key(path);
        Txn::create(key.clone(), owned(&key, "1", owners))
    };
    let one = async |n: usize| {
        let path = if n == 7 { long_name.clone() } else { format!("a/{n}") };
        commit(store, create(&path, &[])).await
    };
    let results = futures::future::join_all((0..20).map(one)).await;
    for (n, result) in results.into_iter().enumerate() {
        match n {
            7 => assert!(matches!(result, Err(TxnError::TooLarge(_))), "{result:?}"),
            _ => drop(result.unwrap()),
        }
    }
    // Other Txns of the same call are not rejected, and the database is not asked to try them.
    let fits = &long[..2_500];
    let together = [
        create("b/1", &[]),
        create(&long_name, &[]),
        create("b/2", &["o", &long]),
        create("b/3", &[fits]),
        create(&format!("b/{fits}"), &[]),
    ];
    let results = store.commit(together.to_vec()).await;
    let refused: Vec<bool> = results.iter().map(|r| matches!(r, Err(TxnError::TooLarge(_)))).collect();
    assert_eq!(refused, [false, true, true, false, false], "{results:?}");
    assert_eq!(process.metric("portico_store_commit_failures_total"), "0");
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), 22);
    assert_eq!(store.dependents(fits).await.unwrap(), [key("b/3")]);
}
