//! Tests of a full disk: stores open, accept deletions, and close. Each test runs in a process with a small file system,
//! which is removed with the process; if mounting is not permitted this is reported and nothing is tested.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_store::{
    Backup, Change, CopyError, Metrics, Precondition, Settings, SqliteStore, SqliteTarget, Store, Txn,
    TxnError, back_up, restore_from,
};

use crate::copies::restore_options;
use crate::harness::*;
use crate::sealed;

/// Environment variable for the child process, which runs this program: path of its file system.
const CHILD: &str = "PORTICO_STORE_SMALL_DISK";
const DISK: &str = "size=8m";
const RESERVE: u64 = 1 << 20;
/// Exit code of the shell that mounts, if mounting is not permitted.
const NOT_MOUNTED: i32 = 77;

/// Runs a test of this file with a small file system.
fn on_small_disk(test: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mount = format!(r#"mount -t tmpfs -o {DISK} none "$0" || exit {NOT_MOUNTED}; exec "$@""#);
    let started = Command::new("unshare")
        .args(["--mount", "sh", "-c", &mount])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("full_disk::{test}"), "--ignored", "--nocapture", "--test-threads=1"])
        .env(CHILD, folder.path())
        .output();
    let skipped = match started {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(error.to_string()),
        started => {
            let output = started.unwrap();
            let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            let not_mounted = output.status.code() == Some(NOT_MOUNTED) || text.starts_with("unshare: ");
            assert!(not_mounted || output.status.success(), "{text}");
            assert!(not_mounted || text.contains("1 passed"), "{text}");
            not_mounted.then_some(text)
        }
    };
    if let Some(reason) = skipped {
        io::stdout().lock().write_all(format!("skipped {test}: {reason}\n").as_bytes()).unwrap();
    }
}

fn disk() -> PathBuf {
    PathBuf::from(std::env::var(CHILD).expect("set by the test that mounts the file system"))
}

fn tune(settings: &mut Settings) {
    settings.reserve_bytes = RESERVE;
    settings.compaction_interval = Duration::from_millis(20);
}

async fn open_at(database: &Path) -> portico_store::SqliteStore {
    open_sqlite(database.to_owned(), &tune).await.unwrap()
}

async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let held = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, held).await.expect(what);
}

async fn create(store: &dyn Store, n: usize) -> Result<i64, TxnError> {
    let key = key(&format!("a/{n:04}"));
    let created = commit(store, Txn::create(key.clone(), value(&key, &"x".repeat(20_000)))).await;
    created.map(|created| created.revision)
}

fn sibling(database: &Path, suffix: &str) -> PathBuf {
    database.with_file_name(format!("portico.db{suffix}"))
}

/// Returns a store with forty objects.
async fn open_filled(database: &Path) -> portico_store::SqliteStore {
    let store = open_at(database).await;
    for n in 0..40 {
        create(&store, n).await.unwrap();
    }
    store
}

/// Fills the disk to the last byte. Returns the path of the file.
fn fill(disk: &Path) -> PathBuf {
    let path = disk.join("filler");
    let mut file = File::create(&path).unwrap();
    for size in [64 * 1024, 1] {
        let error = loop {
            if let Err(error) = file.write_all(&vec![1; size]) {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
    path
}

/// Checks that only deletions succeed until `filler` is deleted.
async fn deletes_and_recovers(store: &dyn Store, filler: &Path) {
    assert!(store.condition().full.is_some());
    assert!(matches!(create(store, 100).await, Err(TxnError::Full(_))));
    let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
    let (before, last) = (now(), store.revision());
    eventually("the clock does not advance", || now() > before).await;
    for n in 0..20 {
        let key = key(&format!("a/{n:04}"));
        let deletion = Change::Delete(value(&key, "gone"));
        commit(store, Txn::single(key, Precondition::Exists, deletion)).await.unwrap();
    }
    // History is deleted: the current state must not be reported for an earlier time.
    assert!(store.revision_at(before).await.unwrap() <= last);
    fs::remove_file(filler).unwrap();
    eventually("the store stays in delete-only mode", || store.condition().full.is_none()).await;
    create(store, 100).await.unwrap();
    assert!(store.revision_at(before).await.unwrap() <= last);
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), 21);
    assert_eq!(store.identity().epoch, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "requires a small file system, which another test of this file mounts"]
async fn starts_after_a_stop() {
    let database = disk().join("data/portico.db");
    open_filled(&database).await.close().await;
    let filler = fill(&disk());
    let store = open_at(&database).await;
    deletes_and_recovers(&store, &filler).await;
    store.close().await;
    drop(store);
    assert_eq!(open_at(&database).await.identity().epoch, 1);
}

#[test]
fn a_store_opens_on_a_full_disk_and_accepts_deletions() {
    on_small_disk("starts_after_a_stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "requires a small file system, which another test of this file mounts"]
async fn starts_after_a_kill() {
    let database = disk().join("data/portico.db");
    let store = open_filled(&database).await;
    // A killed process leaves no index of its log, which must be created.
    let killed = disk().join("killed/portico.db");
    fs::create_dir(killed.parent().unwrap()).unwrap();
    for suffix in ["", "-wal", ".mark", ".reserve"] {
        fs::copy(sibling(&database, suffix), sibling(&killed, suffix)).unwrap();
    }
    store.close().await;
    drop(store);
    fs::remove_dir_all(database.parent().unwrap()).unwrap();
    let filler = fill(&disk());
    let store = open_at(&killed).await;
    deletes_and_recovers(&store, &filler).await;
}

#[test]
fn a_store_that_was_killed_opens_on_a_full_disk() {
    on_small_disk("starts_after_a_kill");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "requires a small file system, which another test of this file mounts"]
async fn closes_on_a_full_disk() {
    let database = disk().join("data/portico.db");
    let store = open_filled(&database).await;
    // The file has free pages, so a checkpoint of the log needs no more space.
    for n in 0..20 {
        delete(&store, &key(&format!("a/{n:04}"))).await;
    }
    store.compact(store.revision()).await.unwrap();
    store.close().await;
    drop(store);
    let store = open_at(&database).await;
    put(&store, &key("a/last"), "x").await;
    let filler = fill(&disk());
    store.close().await;
    drop(store);
    assert!(!sibling(&database, "-wal").exists());
    let mark = fs::read_to_string(sibling(&database, ".mark")).unwrap();
    assert!(mark.contains(r#""open":false"#), "{mark}");
    fs::remove_file(filler).unwrap();
    let store = open_at(&database).await;
    assert_eq!((store.identity().epoch, store.snapshot(&config_maps()).await.unwrap().len()), (1, 21));
}

#[test]
fn a_store_closed_on_a_full_disk_reopens_with_the_same_state() {
    on_small_disk("closes_on_a_full_disk");
}

/// Writes to a file until the process ends, also after the disk was full.
fn keep_filling(disk: &Path) {
    let mut file = File::create(disk.join("growing")).unwrap();
    std::thread::spawn(move || {
        loop {
            // Fails while the disk is full.
            if file.write_all(&[1; 64 * 1024]).is_err() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "requires a small file system, which another test of this file mounts"]
async fn log_keeps_its_blocks() {
    let mut settings = settings_at(disk().join("data/portico.db"));
    tune(&mut settings);
    settings.compaction_interval = Duration::from_secs(3600);
    // With sealed values, each compaction cuts the log.
    let (seal, metrics) = (sealed::seal(&[sealed::keys("a")]), Metrics::new(&Registry::new()));
    let opened =
        SqliteStore::open_sealed(settings, Arc::new(WithNodeName), seal, metrics, &TaskSet::new()).await;
    let store = opened.unwrap();
    for n in 0..40 {
        create(&store, n).await.unwrap();
    }
    delete(&store, &nth(0)).await;
    fill(&disk());
    keep_filling(&disk());
    let log = sibling(&disk().join("data/portico.db"), "-wal");
    for n in 1..40 {
        store.compact(store.revision()).await.unwrap();
        assert_eq!(fs::metadata(&log).unwrap().len(), RESERVE);
        delete(&store, &nth(n)).await;
    }
    assert!(store.snapshot(&config_maps()).await.unwrap().is_empty());
}

#[test]
fn another_program_takes_no_blocks_of_the_log_at_a_checkpoint() {
    on_small_disk("log_keeps_its_blocks");
}

/// Maximum size of a database without objects: spare pages, and the extension for the next groups.
const SHRUNK_BYTES: u64 = 4 << 20;
/// Sizes of the objects that fill a disk.
const SIZES: [usize; 4] = [100, 2_000, 20_000, 200_000];
/// Exit code of the process that fills a disk and ends like a killed one.
const DIED: i32 = 42;
/// Environment variable of that process: size limit of its database.
const LIMIT: &str = "PORTICO_STORE_LIMIT";

async fn open_limited(limit: Option<u64>) -> portico_store::SqliteStore {
    let tune = move |settings: &mut Settings| {
        tune(settings);
        settings.max_file_bytes = limit;
    };
    open_sqlite(disk().join("data/portico.db"), &tune).await.unwrap()
}

fn nth(n: usize) -> portico_store::Key {
    key(&format!("a/{n:04}"))
}

async fn delete_nth(store: &dyn Store, n: usize) {
    let deletion = Change::Delete(value(&nth(n), &"x".repeat(SIZES[n % SIZES.len()])));
    let deleted = commit(store, Txn::single(nth(n), Precondition::Exists, deletion)).await;
    assert!(deleted.is_ok(), "{n}: {deleted:?}");
}

/// Fills a store until it rejects writes, then its disk to the last byte, then deletes every second object.
async fn fill_and_delete(limit: Option<u64>) -> portico_store::SqliteStore {
    let store = open_limited(limit).await;
    let mut created = 0;
    loop {
        let new = value(&nth(created), &"x".repeat(SIZES[created % SIZES.len()]));
        match commit(&store, Txn::create(nth(created), new)).await {
            Ok(_) => created += 1,
            Err(error) => break assert!(matches!(error, TxnError::Full(_)), "{error}"),
        }
    }
    assert!(created > 20, "{created}");
    fill(&disk());
    for n in (0..created).step_by(2) {
        delete_nth(&store, n).await;
    }
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), created / 2);
    store
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "child process of a test in this file"]
async fn fills_the_disk_and_exits() {
    let limit = std::env::var(LIMIT).unwrap().parse().ok();
    let _store = fill_and_delete(limit).await;
    std::process::exit(DIED);
}

/// Deletes the remaining objects on a full disk, then frees space.
async fn delete_the_rest(limit: Option<u64>) {
    fill(&disk());
    let store = open_limited(limit).await;
    let remaining = store.snapshot(&config_maps()).await.unwrap().len();
    assert!(remaining > 10, "{remaining}");
    for n in 0..remaining {
        delete_nth(&store, 2 * n + 1).await;
    }
    assert!(store.snapshot(&config_maps()).await.unwrap().is_empty());
    store.compact(store.revision()).await.unwrap();
    let database = disk().join("data/portico.db");
    eventually("the database does not shrink", || fs::metadata(&database).unwrap().len() < SHRUNK_BYTES)
        .await;
    fs::remove_file(disk().join("filler")).unwrap();
    eventually("the store stays in delete-only mode", || store.condition().full.is_none()).await;
    create(&store, 0).await.unwrap();
    store.close().await;
    drop(store);
    fs::remove_dir_all(disk().join("data")).unwrap();
}

async fn test_deletions(limit: Option<u64>) {
    let store = fill_and_delete(limit).await;
    store.close().await;
    drop(store);
    delete_the_rest(limit).await;

    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "full_disk::fills_the_disk_and_exits", "--ignored", "--nocapture"])
        .env(LIMIT, limit.map_or_else(String::new, |limit| limit.to_string()))
        .output()
        .unwrap();
    assert_eq!(child.status.code(), Some(DIED), "{}", String::from_utf8_lossy(&child.stdout));
    delete_the_rest(limit).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "requires a small file system, which another test of this file mounts"]
async fn deletions_on_a_full_disk() {
    test_deletions(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "requires a small file system, which another test of this file mounts"]
async fn deletions_at_the_size_limit() {
    test_deletions(Some(3 << 20)).await;
}

#[test]
fn all_objects_can_be_deleted_on_a_full_disk_after_a_stop_or_a_kill() {
    on_small_disk("deletions_on_a_full_disk");
}

#[test]
fn all_objects_can_be_deleted_at_the_size_limit_on_a_full_disk() {
    on_small_disk("deletions_at_the_size_limit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_that_cannot_be_written_is_not_retried_with_every_write() {
    /// More revisions than the mark may be behind.
    const REVISIONS: usize = 5_000;
    let backend = Sqlite::new();
    // The mark is also written with each compaction.
    let store = backend.open_with(&|settings| settings.compaction_interval = Duration::from_secs(3600)).await;
    let mark = sibling(&backend.path(), ".mark");
    fs::remove_file(&mark).unwrap();
    // A directory blocks the path of the file.
    fs::create_dir_all(mark.join("blocker")).unwrap();
    let txn = |from: usize| {
        let operation = |n: usize| {
            let key = key(&format!("a/{n}"));
            let change = Change::Put(value(&key, "x"));
            portico_store::Operation { key, precondition: Precondition::Any, change }
        };
        Txn { operations: (from..from + 1_000).map(operation).collect() }
    };
    for from in (0..REVISIONS).step_by(1_000) {
        commit(&*store, txn(from)).await.unwrap();
    }
    // An attempt creates a file in the folder and removes it.
    let folder_times = || {
        let folder = fs::metadata(backend.path().parent().unwrap()).unwrap();
        (folder.mtime(), folder.mtime_nsec())
    };
    // The due attempt has finished when the next write is acknowledged.
    put(&*store, &key("a/last"), "x").await;
    let before = folder_times();
    for n in 0..50 {
        put(&*store, &key("a/last"), &n.to_string()).await;
    }
    assert_eq!(folder_times(), before);
}

/// Returns text that compresses badly.
fn noise(seed: u64, bytes: usize) -> String {
    let mut state = seed * 2 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + (state >> 58) as u8)
    };
    (0..bytes).map(|_| next()).filter(|letter| !matches!(letter, '\\' | '"')).collect()
}

#[test]
fn backups_and_restores_fail_on_a_full_disk_and_succeed_once_space_is_available() {
    on_small_disk("backup_and_restore");
}

/// Child process.
#[tokio::test]
#[ignore = "child process of a test in this file"]
async fn backup_and_restore() {
    let (source, disk) = (Sqlite::new(), disk());
    let store = source.open().await;
    for n in 0..6 {
        put(&*store, &key(&format!("a/{n}")), &noise(n, 600_000)).await;
    }
    let (file, filler) = (disk.join("backup"), disk.join("filler"));
    fs::write(&filler, vec![0; 6 << 20]).unwrap();
    let backup = Backup { file: &file, revision: None, history: true, now: 1, portico: "test" };
    let full = back_up(&*store.copy_source(), &backup).await;
    assert!(matches!(&full, Err(CopyError::File { .. })), "{full:?}");
    assert!(full.unwrap_err().to_string().contains("no space left on device"));
    assert!(!file.exists());
    fs::remove_file(&filler).unwrap();
    let summary = back_up(&*store.copy_source(), &backup).await.unwrap();
    assert!(summary.resumed_objects > 0 && summary.counts.objects == 6, "{summary:?}");

    fs::write(&filler, vec![0; 1 << 20]).unwrap();
    let (database, store_id) = (disk.join("data/portico.db"), &store.identity().store_id);
    let target = SqliteTarget::open(&database, store_id, false).await.unwrap();
    let full = restore_from(&file, Box::new(target), restore_options(1)).await.unwrap_err().to_string();
    assert!(full.contains("portico.db.restoring: no space is left"), "{full}");
    let files = fs::read_dir(disk.join("data")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(files.into_iter().all(|name| name != "portico.db.restoring"));
    assert_eq!(fs::metadata(&database).unwrap().len(), 0);
}
