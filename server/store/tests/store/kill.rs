//! Tests with kill -9 during many writes: every acknowledged write exists afterwards, exactly once.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use portico_store::{Event, EventType, Scope, Store, Txn};

use crate::harness::*;

/// Number of kills.
const ROUNDS: usize = 20;
/// Number of concurrent writers.
const CALLERS: usize = 16;
/// Environment variable for the child process, which runs this program: path of its database.
const CHILD: &str = "PORTICO_STORE_STORM";

/// Child process: writes until it is killed, and reports each write after it was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "child process of a test in this file"]
async fn child_process() {
    let setting = std::env::var(CHILD).expect("set by the test that starts this process");
    let (round, path) = setting.split_once(':').unwrap();
    let store = open_sqlite(PathBuf::from(path), &|_| ()).await.unwrap();
    let caller = async |caller: usize| {
        for n in 0.. {
            let key = key(&format!("a/{round}-{caller}-{n}"));
            let created = commit(&store, Txn::create(key.clone(), value(&key, "1"))).await.unwrap();
            report(&format!("{} {}", key.name(), created.revision));
            let updated = Txn::update(key.clone(), created.revision, value(&key, "2"));
            let updated = commit(&store, updated).await.unwrap();
            report(&format!("{} {}", key.name(), updated.revision));
        }
    };
    futures::future::join_all((0..CALLERS).map(caller)).await;
}

fn report(line: &str) {
    // One write call for a whole line, which the pipe does not split.
    std::io::stdout().lock().write_all(format!("ack {line}\n").as_bytes()).unwrap();
}

/// Runs the child process until it has acknowledged `enough` writes, and kills it. Returns all acknowledged writes.
fn run_and_kill_child(path: &Path, round: usize, enough: usize) -> Vec<(String, i64)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child_process", "--ignored", "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{round}:{}", path.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = Vec::new();
    for line in output.lines() {
        let line = line.unwrap();
        let Some(write) = line.strip_prefix("ack ").and_then(|ack| ack.split_once(' ')) else { continue };
        // The kill may truncate the last line, whose write was then not acknowledged.
        acknowledged.push((write.0.to_owned(), write.1.parse().unwrap()));
        if acknowledged.len() == enough {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    acknowledged
}

async fn log(store: &dyn Store) -> Vec<Arc<Event>> {
    let mut watch = store.watch(Scope::all(&config_maps()), 1).unwrap();
    take(&mut watch, usize::try_from(store.revision() - 1).unwrap()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_write_survives_kill_9_exactly_once() {
    let backend = Sqlite::new();
    // Creates folder and file, so that a child that is killed at once leaves a database.
    backend.open().await.close().await;
    let mut acknowledged: HashMap<(String, i64), usize> = HashMap::new();
    for round in 0..ROUNDS {
        let path = backend.path();
        let writes = tokio::task::spawn_blocking(move || run_and_kill_child(&path, round, 20 + 37 * round))
            .await
            .unwrap();
        assert!(writes.len() >= 20 + 37 * round);
        for write in writes {
            *acknowledged.entry(write).or_default() += 1;
        }
        let store = backend.open().await;
        let events = log(&*store).await;
        let mut states = HashSet::new();
        let mut created = HashSet::new();
        for event in &events {
            let name = event.record.key.name().to_owned();
            assert!(
                event.event_type != EventType::Added || created.insert(name.clone()),
                "{name} was created twice"
            );
            states.insert((name, event.revision()));
        }
        for (write, times) in &acknowledged {
            assert!(states.contains(write) && *times == 1, "round {round}: {write:?}");
        }
        let snapshot = store.snapshot(&config_maps()).await.unwrap();
        assert_eq!(snapshot.len(), created.len());
        store.close().await;
    }
}
