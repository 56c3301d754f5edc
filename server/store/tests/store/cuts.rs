//! Interrupts a start, a write and a stop at every step: by a kill, a power failure, a disk that fails once or permanently, or
//! a full disk. The next start must serve the remains in the right epoch. A preloaded library intercepts disk access of the
//! process (`portico_tests::disk`); without a C compiler this is reported and nothing is tested.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use futures::StreamExt;
use portico_store::{Change, Expect, Scope, Settings, Store, Txn, TxnError, WatchError};
use portico_tests::disk::{Shim, lose_power};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::harness::*;

/// Environment variable for the child process, which runs this program: path of its database.
const CHILD: &str = "PORTICO_STORE_CUT";
/// Upper bound of the steps of a start, a write and a stop.
const MOST_STEPS: u64 = 400;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// State before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// No files.
    Nothing,
    /// Files after a stop.
    Stopped,
    /// Files after a kill: a log exists.
    Killed,
    /// Files after a kill, with the log removed: exactly one new epoch must begin.
    WithoutLog,
}

/// Kind of interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Kill,
    Power,
    /// One step fails.
    Once(i32),
    /// Every step from one on fails.
    Lasting(i32),
}

const BEFORE: [Before; 4] = [Before::Nothing, Before::Stopped, Before::Killed, Before::WithoutLog];
const CUTS: [Cut; 5] = [Cut::Kill, Cut::Power, Cut::Once(EIO), Cut::Lasting(EIO), Cut::Lasting(ENOSPC)];

fn tune(settings: &mut Settings) {
    settings.reserve_bytes = 64 << 10;
}

fn report(line: &str) {
    io::stdout().lock().write_all(format!("report {line}\n").as_bytes()).unwrap();
}

/// Child process: starts, writes, stops, and reports the results.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the program that a test of this file starts and cuts off, no test of its own"]
async fn serving() {
    let path = std::env::var(CHILD).expect("started by the test that cuts it off");
    let store = match open_sqlite(path.into(), &tune).await {
        Ok(store) => store,
        Err(error) => return report(&format!("refused {error}")),
    };
    report(&format!("epoch {}", store.identity().epoch));
    let key = key("a/late");
    let txn = Txn::one(key.clone(), Expect::Any, Change::Put(value(&key, "late")));
    match commit(&store, txn).await {
        Ok(written) => report(&format!("written {}", written.revision)),
        Err(TxnError::Unknown(_)) => {}
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
    async fn make() -> Self {
        let (folder, backend) = (tempfile::tempdir().unwrap(), Sqlite::new());
        let there = backend.path();
        let copy = |suffixes: &[&str], before: Before| {
            let data = folder.path().join(format!("{before:?}"));
            fs::create_dir(&data).unwrap();
            for suffix in suffixes {
                let name = format!("portico.db{suffix}");
                fs::copy(there.with_file_name(&name), data.join(&name)).unwrap();
            }
        };
        fs::create_dir(folder.path().join(format!("{:?}", Before::Nothing))).unwrap();
        let mut revision = 0;
        for round in 0..2 {
            let store = backend.try_open(&tune).await.unwrap();
            for n in 0..3 {
                revision = put(&store, &key(&format!("a/{round}-{n}")), "x").await;
            }
            if round == 1 {
                copy(&["", "-wal", ".mark"], Before::Killed);
                copy(&["", ".mark"], Before::WithoutLog);
            }
            store.close().await;
            if round == 0 {
                copy(&["", ".mark"], Before::Stopped);
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
fn cut_off(mut shim: Shim, data: &Path, cut: Cut, step: u64) -> Report {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "cuts::serving", "--ignored", "--nocapture", "--test-threads=1"]);
    shim.prepare(data, command.env(CHILD, data.join("portico.db"))).unwrap();
    let (last, errno) = match cut {
        Cut::Kill | Cut::Power => (step, None),
        Cut::Once(errno) => (step, Some(errno)),
        Cut::Lasting(errno) => (u64::MAX, Some(errno)),
    };
    shim.cut(step..=last, errno).unwrap();
    let output = command.output().unwrap();
    let mut report = Report { steps: shim.steps().unwrap(), ..Report::default() };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        match line.split_once("report ").and_then(|(_, report)| report.split_once(' ')) {
            Some(("epoch", epoch)) => report.epoch = Some(epoch.parse().unwrap()),
            Some(("refused-write", why)) => report.refused = Some(why.to_owned()),
            Some(("written", revision)) => report.written = Some(revision.parse().unwrap()),
            _ => {}
        }
    }
    if cut == Cut::Power && report.steps >= step {
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
async fn walk(shim: &Shim, prepared: &Prepared, before: Before, cut: Cut) -> (u64, Vec<String>) {
    let mut wrong = Vec::new();
    for step in 1..MOST_STEPS {
        let what = format!("{before:?}, {cut:?} at step {step}");
        let folder = folder();
        let data = folder.path().join("data");
        let template = prepared.folder.path().join(format!("{before:?}"));
        let mut copied = Command::new("cp");
        copied.arg("-r").arg(template).arg(&data);
        assert!(copied.status().unwrap().success());
        let (own, served) = (shim.of(folder.path()).unwrap(), data.clone());
        let report = tokio::task::spawn_blocking(move || cut_off(own, &served, cut, step)).await.unwrap();
        let checked = check(&data.join("portico.db"), before, prepared.revision, &report).await;
        wrong.extend(checked.err().map(|why| format!("{what}: {why} ({report:?})")));
        if report.steps < step {
            assert!(report.written.is_some(), "{what}: {report:?}");
            return (step, wrong);
        }
    }
    panic!("{before:?}, {cut:?}: there is no end of steps");
}

/// Checks the start after the interruption, and the next one. Returns the failure.
async fn check(path: &Path, before: Before, last: i64, report: &Report) -> Result<(), String> {
    let epoch = if before == Before::WithoutLog { 2 } else { 1 };
    let right = |what: &str, is_right: bool| if is_right { Ok(()) } else { Err(what.to_owned()) };
    right("it served in the wrong epoch", report.epoch.is_none_or(|report| report == epoch))?;
    for start in ["the next start", "the start after it"] {
        let opened = open_sqlite(path.to_owned(), &tune).await;
        let store = opened.map_err(|error| format!("{start}: {error}"))?;
        let found = store.identity().epoch;
        right(&format!("{start} is of epoch {found}"), found == epoch)?;
        if let Some(written) = report.written {
            let snapshot = store.snapshot(&config_maps()).await.unwrap();
            let found = snapshot.get_path("a/late").map(|record| record.revision);
            right(&format!("{start} has lost a write"), found == Some(written))?;
        }
        if report.refused.is_some() {
            let snapshot = store.snapshot(&config_maps()).await.unwrap();
            right(&format!("{start} has a write that was refused"), snapshot.get_path("a/late").is_none())?;
        }
        if before == Before::Killed || before == Before::WithoutLog {
            let watch = store.watch(Scope::all(&config_maps()), last);
            let goes_on = !matches!(watch, Err(WatchError::Compacted { .. }));
            right(&format!("{start}: a watch goes on: {goes_on}"), goes_on == (before == Before::Killed))?;
        }
        store.close().await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_is_cut_off_at_any_step_is_followed_by_one_that_serves_in_the_right_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let shim = match Shim::compile(folder.path()).unwrap() {
        Ok(shim) => shim,
        Err(why) => return portico_tests::skipped(&format!("starts that are cut off: {why}")),
    };
    let prepared = Prepared::make().await;
    let all = BEFORE.into_iter().flat_map(|before| CUTS.map(|cut| (before, cut)));
    let walks = futures::stream::iter(all).map(|(before, cut)| walk(&shim, &prepared, before, cut));
    let (steps, wrong): (Vec<u64>, Vec<Vec<String>>) = walks.buffer_unordered(2).unzip().await;
    assert!(wrong.iter().all(Vec::is_empty), "{}", wrong.concat().join("\n"));
    // A start must have durable effects.
    assert!(steps.iter().all(|steps| *steps > 10), "{steps:?}");
}

#[test]
fn a_store_whose_runtime_ends_first_leaves_its_log_and_is_the_same_when_it_opens_again() {
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
