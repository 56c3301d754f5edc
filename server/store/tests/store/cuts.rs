//! Interrupts a start, a write and a stop at every step: by a kill, a power failure, a disk that fails once or permanently, or
//! a full disk. The next start must serve the remains in the right epoch. A preloaded library intercepts disk access of the
//! process (`portico_tests::disk`); without a C compiler this is reported and nothing is tested.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use futures::StreamExt;
use portico_store::{Change, Precondition, Scope, Settings, Store, Txn, TxnError, WatchError};
use portico_tests::disk::{Shim, lose_power};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::harness::*;

/// Environment variable for the child process, which runs this program: path of its database.
const CHILD: &str = "PORTICO_STORE_CUT";
/// Upper bound of the steps of a start, a write and a stop.
const MAX_STEPS: u64 = 400;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// State before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InitialState {
    /// No files.
    Empty,
    /// Files after a stop.
    Stopped,
    /// Files after a kill: a log exists.
    Killed,
    /// Files after a kill, with the log removed: exactly one new epoch must begin.
    WithoutLog,
}

/// Kind of interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    Kill,
    Power,
    /// One step fails.
    Once(i32),
    /// Every step from one on fails.
    Lasting(i32),
}

const INITIAL_STATES: [InitialState; 4] =
    [InitialState::Empty, InitialState::Stopped, InitialState::Killed, InitialState::WithoutLog];
const INTERRUPTIONS: [Interruption; 5] = [
    Interruption::Kill,
    Interruption::Power,
    Interruption::Once(EIO),
    Interruption::Lasting(EIO),
    Interruption::Lasting(ENOSPC),
];

fn tune(settings: &mut Settings) {
    settings.reserve_bytes = 64 << 10;
}

fn report(line: &str) {
    io::stdout().lock().write_all(format!("report {line}\n").as_bytes()).unwrap();
}

/// Child process: starts, writes, stops, and reports the results.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "child process of a test in this file"]
async fn child_process() {
    let path = std::env::var(CHILD).expect("set by the test that starts this process");
    let store = match open_sqlite(path.into(), &tune).await {
        Ok(store) => store,
        Err(error) => return report(&format!("refused {error}")),
    };
    report(&format!("epoch {}", store.identity().epoch));
    let key = key("a/late");
    let txn = Txn::single(key.clone(), Precondition::Any, Change::Put(value(&key, "late")));
    match commit(&store, txn).await {
        Ok(written) => report(&format!("written {}", written.revision)),
        Err(TxnError::InDoubt(_)) => {}
        Err(error) => {
            report(&format!("refused-write {error}"));
            // Like a kill: the next start commits the content of the log.
            std::process::exit(0);
        }
    }
    store.close().await;
}

/// Folders with each [`InitialState`], and the last acknowledged revision in them.
struct Prepared {
    folder: tempfile::TempDir,
    revision: i64,
}

impl Prepared {
    async fn create() -> Self {
        let (folder, backend) = (tempfile::tempdir().unwrap(), Sqlite::new());
        let database = backend.path();
        let copy = |suffixes: &[&str], before: InitialState| {
            let data = folder.path().join(format!("{before:?}"));
            fs::create_dir(&data).unwrap();
            for suffix in suffixes {
                let name = format!("portico.db{suffix}");
                fs::copy(database.with_file_name(&name), data.join(&name)).unwrap();
            }
        };
        fs::create_dir(folder.path().join(format!("{:?}", InitialState::Empty))).unwrap();
        let mut revision = 0;
        for round in 0..2 {
            let store = backend.try_open(&tune).await.unwrap();
            for n in 0..3 {
                revision = put(&store, &key(&format!("a/{round}-{n}")), "x").await;
            }
            if round == 1 {
                copy(&["", "-wal", ".mark"], InitialState::Killed);
                copy(&["", ".mark"], InitialState::WithoutLog);
            }
            store.close().await;
            if round == 0 {
                copy(&["", ".mark"], InitialState::Stopped);
            }
        }
        Self { folder, revision }
    }
}

/// Report of a child process.
#[derive(Debug, Default)]
struct Report {
    epoch: Option<i64>,
    written: Option<i64>,
    /// Error of a commit that was not written.
    refused: Option<String>,
    steps: u64,
}

/// Runs the child process on the files of `data` and interrupts it at a step.
fn interrupt(mut shim: Shim, data: &Path, interruption: Interruption, step: u64) -> Report {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "cuts::child_process", "--ignored", "--nocapture", "--test-threads=1"]);
    shim.prepare(data, command.env(CHILD, data.join("portico.db"))).unwrap();
    let (last, errno) = match interruption {
        Interruption::Kill | Interruption::Power => (step, None),
        Interruption::Once(errno) => (step, Some(errno)),
        Interruption::Lasting(errno) => (u64::MAX, Some(errno)),
    };
    shim.cut(step..=last, errno).unwrap();
    let output = command.output().unwrap();
    let mut report = Report { steps: shim.steps().unwrap(), ..Report::default() };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        match line.split_once("report ").and_then(|(_, report)| report.split_once(' ')) {
            Some(("epoch", epoch)) => report.epoch = Some(epoch.parse().unwrap()),
            Some(("refused-write", error)) => report.refused = Some(error.to_owned()),
            Some(("written", revision)) => report.written = Some(revision.parse().unwrap()),
            _ => {}
        }
    }
    if interruption == Interruption::Power && report.steps >= step {
        lose_power(shim.shadow(), data, &mut StdRng::seed_from_u64(step)).unwrap();
    }
    report
}

/// Returns a folder in memory if possible: the library tracks synced data on any disk.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// Interrupts a start at every step, and starts again each time. Returns the number of steps, and the failures.
async fn test_all_steps(
    shim: &Shim,
    prepared: &Prepared,
    before: InitialState,
    interruption: Interruption,
) -> (u64, Vec<String>) {
    let mut failures = Vec::new();
    for step in 1..MAX_STEPS {
        let description = format!("{before:?}, {interruption:?} at step {step}");
        let folder = folder();
        let data = folder.path().join("data");
        let template = prepared.folder.path().join(format!("{before:?}"));
        let mut copied = Command::new("cp");
        copied.arg("-r").arg(template).arg(&data);
        assert!(copied.status().unwrap().success());
        let (folder_shim, served_data) = (shim.for_folder(folder.path()).unwrap(), data.clone());
        let report =
            tokio::task::spawn_blocking(move || interrupt(folder_shim, &served_data, interruption, step))
                .await
                .unwrap();
        let checked = check(&data.join("portico.db"), before, prepared.revision, &report).await;
        failures.extend(checked.err().map(|error| format!("{description}: {error} ({report:?})")));
        if report.steps < step {
            assert!(report.written.is_some(), "{description}: {report:?}");
            return (step, failures);
        }
    }
    panic!("{before:?}, {interruption:?}: more than {MAX_STEPS} steps");
}

/// Checks the start after the interruption, and the next one. Returns the failure.
async fn check(path: &Path, before: InitialState, last: i64, report: &Report) -> Result<(), String> {
    let epoch = if before == InitialState::WithoutLog { 2 } else { 1 };
    let ensure = |description: &str, holds: bool| if holds { Ok(()) } else { Err(description.to_owned()) };
    ensure("served in the wrong epoch", report.epoch.is_none_or(|report| report == epoch))?;
    for start in ["next start", "second start"] {
        let opened = open_sqlite(path.to_owned(), &tune).await;
        let store = opened.map_err(|error| format!("{start}: {error}"))?;
        let found = store.identity().epoch;
        ensure(&format!("{start}: epoch {found}"), found == epoch)?;
        if let Some(written) = report.written {
            let snapshot = store.snapshot(&config_maps()).await.unwrap();
            let found = snapshot.get_path("a/late").map(|record| record.revision);
            ensure(&format!("{start}: acknowledged write lost"), found == Some(written))?;
        }
        if report.refused.is_some() {
            let snapshot = store.snapshot(&config_maps()).await.unwrap();
            ensure(&format!("{start}: rejected write present"), snapshot.get_path("a/late").is_none())?;
        }
        if before == InitialState::Killed || before == InitialState::WithoutLog {
            let watch = store.watch(Scope::all(&config_maps()), last);
            let can_resume = !matches!(watch, Err(WatchError::Compacted { .. }));
            ensure(
                &format!("{start}: a watch can resume: {can_resume}"),
                can_resume == (before == InitialState::Killed),
            )?;
        }
        store.close().await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_interruption_at_any_step_the_next_start_serves_in_the_right_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let shim = match Shim::compile(folder.path()).unwrap() {
        Ok(shim) => shim,
        Err(reason) => return portico_tests::report_skip(&format!("interrupted starts: {reason}")),
    };
    let prepared = Prepared::create().await;
    let all = INITIAL_STATES.into_iter().flat_map(|before| INTERRUPTIONS.map(|cut| (before, cut)));
    let runs = futures::stream::iter(all).map(|(before, cut)| test_all_steps(&shim, &prepared, before, cut));
    let (steps, failures): (Vec<u64>, Vec<Vec<String>>) = runs.buffer_unordered(2).unzip().await;
    assert!(failures.iter().all(Vec::is_empty), "{}", failures.concat().join("\n"));
    // A start must have durable effects.
    assert!(steps.iter().all(|steps| *steps > 10), "{steps:?}");
}

#[test]
fn a_store_whose_runtime_ends_first_keeps_its_log_and_state() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (backend, first) = (Sqlite::new(), runtime());
    let (store, revision) = first.block_on(async {
        let store = backend.try_open(&tune).await.unwrap();
        let revision = put(&store, &key("a/1"), "x").await;
        (store, revision)
    });
    drop(first);
    assert!(backend.path().with_file_name("portico.db-wal").exists());
    drop(store);
    runtime().block_on(async {
        let store = backend.try_open(&tune).await.unwrap();
        assert_eq!((store.identity().epoch, store.revision()), (1, revision));
        store.close().await;
    });
}
