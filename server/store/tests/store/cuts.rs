//! A start, a write and a stop that are cut off at any step: by a kill, a loss of power, a disk that fails once or for good, one that
//! is full. Whatever is left the next start serves it, in the right epoch. A library of ours stands between the process and its disk
//! (`portico_tests::disk`); where there is no C compiler this reports so and tests nothing.

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

/// For the child, which is this same program: where its database is.
const CHILD: &str = "PORTICO_STORE_CUT";
/// More steps than a start, a write and a stop have.
const MOST_STEPS: u64 = 400;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// What there is before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// Nothing.
    Nothing,
    /// What a stop leaves.
    Stopped,
    /// What a kill leaves: a log.
    Killed,
    /// The same, and somebody has taken the log away: a new epoch must begin, and only one.
    WithoutLog,
}

/// How it is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Kill,
    Power,
    /// One step fails.
    Once(i32),
    /// Every step fails from one on.
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

/// The child: starts, writes, stops, and reports what came of it.
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
            // As a kill: what the log has is committed by the next start.
            std::process::exit(0);
        }
    }
    store.close().await;
}

/// Folders that hold each [`Before`], and the last revision that was acknowledged there.
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

/// What a child reported.
#[derive(Debug, Default)]
struct Report {
    epoch: Option<i64>,
    written: Option<i64>,
    /// The error of a commit that was not written.
    refused: Option<String>,
    steps: u64,
}

/// Runs the child on the files of `data` and cuts it off at a step.
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

/// In memory where that can be: what is synced is kept by the library, on whatever disk.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// Cuts a start off at every step, and starts again each time; how many steps there were, and what was wrong.
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

/// The start after the cut, and the one after that; what is wrong with them.
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
    // A start that changes nothing durable would be no start.
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
