//! Tests of restoring database files, and of databases that were replaced by another program.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use portico_store::{
    BackupError, DEFAULT_REVISION_BUMP, Doctor, ListAt, MetadataIndexer, OpenError, Scope, Store, StoreError,
    WatchError, restore,
};

use crate::harness::*;

/// Environment variable for the child process, which runs this program: path of its database.
const CHILD: &str = "PORTICO_STORE_BACKUP";

async fn lines_of(store: &dyn Store) -> Vec<String> {
    lines(store.snapshot(&config_maps()).await.unwrap().iter())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_begins_a_new_epoch_that_rejects_earlier_revisions() {
    let backend = Sqlite::new();
    let file = backend.path().with_file_name("backup");
    let store = backend.open().await;
    let identity = store.identity().clone();
    put(&*store, &key("a/1"), "kept").await;
    put(&*store, &key("a/2"), "old").await;
    copy_database(&backend.path(), &file).await;
    let copied = store.revision();
    put(&*store, &key("a/2"), "lost").await;
    let latest_revision = put(&*store, &key("a/3"), "lost").await;
    let saved_lines = lines_of(&*store).await;
    store.close().await;
    drop(store);

    // Restores a second time: revisions of the first restored epoch become invalid as well.
    let (mut latest, mut shown) = (latest_revision, vec![copied, latest_revision]);
    for epoch in 2..=3 {
        let restored = restore(&file, &backend.path(), DEFAULT_REVISION_BUMP).await.unwrap();
        assert_eq!((restored.epoch, &restored.store_id), (epoch, &identity.store_id));
        assert_eq!(restored.revision, latest + DEFAULT_REVISION_BUMP);
        let replaced = restored.replaced.unwrap();
        assert!(replaced.ends_with(format!("portico.db.epoch-{}", epoch - 1)), "{}", replaced.display());
        let store = backend.open().await;
        assert_eq!(store.identity().epoch, epoch);
        assert_eq!(lines_of(&*store).await, ["a/1@2=kept", "a/2@3=old"]);
        for earlier in &shown {
            let watch = store.watch(Scope::all(&config_maps()), *earlier);
            assert!(matches!(watch, Err(WatchError::Compacted { .. })), "{earlier}");
            let next_page = ListAt {
                scope: Scope::all(&config_maps()),
                revision: *earlier,
                after: Some("a/1".to_owned()),
                limit: Some(1),
                exact_count: true,
            };
            assert!(matches!(store.list_at(next_page).await, Err(StoreError::Compacted { .. })), "{earlier}");
        }
        let mut watch = store.watch(Scope::all(&config_maps()), store.revision()).unwrap();
        latest = put(&*store, &key("a/4"), "new").await;
        shown.push(latest);
        assert_eq!(event_lines(&take(&mut watch, 1).await), [format!("Added a/4@{latest}")]);
        store.close().await;
    }
    // The database that was replaced first is complete.
    let first = Sqlite::new();
    restore(&backend.path().with_file_name("portico.db.epoch-1"), &first.path(), 1).await.unwrap();
    assert_eq!(lines_of(&*first.open().await).await, saved_lines);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_restore_changes_nothing() {
    let backend = Sqlite::new();
    let file = backend.path().with_file_name("backup");
    let nothing = restore(&file, &backend.path(), 1).await;
    assert!(matches!(nothing, Err(BackupError::NoStore(path)) if path == file));
    let store = backend.open().await;
    put(&*store, &key("a/1"), "x").await;
    copy_database(&backend.path(), &file).await;
    let used = restore(&file, &backend.path(), 1).await;
    assert!(matches!(used, Err(BackupError::Open(OpenError::InUse { .. }))), "{used:?}");
    store.close().await;
    drop(store);
    let text = backend.path().with_file_name("text");
    std::fs::write(&text, "this is no database, whatever its name says. ".repeat(30)).unwrap();
    let foreign = restore(&text, &backend.path(), 1).await;
    assert!(matches!(foreign, Err(BackupError::Open(OpenError::Database { .. }))), "{foreign:?}");
    // Overwrites a page of the backup: a copy that SQLite finds damaged, or cannot read, replaces nothing.
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0x5a);
    std::fs::write(&file, bytes).unwrap();
    assert!(restore(&file, &backend.path(), 1).await.is_err());
    let store = backend.open().await;
    assert_eq!((store.identity().epoch, lines_of(&*store).await), (1, vec!["a/1@2=x".to_owned()]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_is_rejected_until_it_is_restored_in_place() {
    let backend = Sqlite::new();
    let store = backend.open().await;
    put(&*store, &key("a/1"), "x").await;
    store.close().await;
    let copy = backend.path().with_file_name("copy");
    std::fs::copy(backend.path(), &copy).unwrap();
    let store = backend.open().await;
    let shown = put(&*store, &key("a/2"), "x").await;
    store.close().await;
    drop(store);
    std::fs::copy(&copy, backend.path()).unwrap();
    let Err(error) = backend.try_open(&|_| ()).await else { panic!("the database was opened") };
    let message = "older copy: revision 2, expected 3. `portico restore ";
    assert!(error.to_string().contains(message), "{error}");
    let restored = restore(&backend.path(), &backend.path(), DEFAULT_REVISION_BUMP).await.unwrap();
    assert_eq!((restored.epoch, restored.revision), (2, shown + DEFAULT_REVISION_BUMP));
    assert_eq!(lines_of(&*backend.open().await).await, ["a/1@2=x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_database_and_none_are_refused() {
    let (backend, other) = (Sqlite::new(), Sqlite::new());
    for backend in [&backend, &other] {
        let store = backend.open().await;
        put(&*store, &key("a/1"), "x").await;
        store.close().await;
    }
    std::fs::copy(other.path(), backend.path()).unwrap();
    let error = backend.try_open(&|_| ()).await.err().unwrap().to_string();
    assert!(error.contains("store ") && error.contains(", expected store "), "{error}");
    std::fs::remove_file(backend.path()).unwrap();
    let error = backend.try_open(&|_| ()).await.err().unwrap().to_string();
    assert!(error.contains("empty database, expected revision 2"), "{error}");
    // Starting with an empty store requires deleting both files.
    std::fs::remove_file(backend.path()).unwrap();
    std::fs::remove_file(backend.path().with_file_name("portico.db.mark")).unwrap();
    assert_eq!(backend.open().await.revision(), 1);
}

/// Writes a line for the parent process, bypassing the capturing of output.
fn print_line(line: &str) {
    std::io::stdout().lock().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Child process: writes, reports its progress, and waits to be killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "child process of a test in this file"]
async fn child_process() {
    let path = std::env::var(CHILD).expect("set by the test that starts this process");
    let store = open_sqlite(PathBuf::from(path), &|_| ()).await.unwrap();
    for n in 0.. {
        put(&store, &key(&format!("a/{}", n % 100)), &"x".repeat(10_000)).await;
        if n == 300 {
            print_line("written");
        }
    }
}

/// Kills a server in the middle of its writes.
fn run_and_kill_child(path: &Path, before_kill: impl FnOnce()) {
    use std::io::{BufRead, BufReader};
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "backups::child_process", "--ignored", "--nocapture", "--test-threads=1"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(output.any(|line| line.unwrap().ends_with("written")), "the child ended early");
    before_kill();
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_ahead_log_missing_after_a_crash_is_detected() {
    let backend = Sqlite::new();
    backend.open().await.close().await;
    run_and_kill_child(&backend.path(), || ());
    let path = backend.path();
    let log = path.with_file_name("portico.db-wal");
    // With its log the database is intact: the log is replayed.
    let store = backend.open().await;
    let (revision, epoch) = (store.revision(), store.identity().epoch);
    assert!(revision > 300 && epoch == 1);
    store.close().await;
    drop(store);
    run_and_kill_child(&path, || ());
    std::fs::remove_file(&log).unwrap();
    // An examination creates no log, which would hide that the log is missing.
    Doctor::new(&path, &MetadataIndexer).examine().await.unwrap();
    assert!(!log.exists());
    let store = backend.open().await;
    assert_eq!(store.identity().epoch, 2, "no new epoch has begun");
    assert!(store.revision() >= revision + DEFAULT_REVISION_BUMP);
    assert!(matches!(store.watch(Scope::all(&config_maps()), revision), Err(WatchError::Compacted { .. })));
    store.close().await;
    drop(store);
    // A crash before anything reached the database file: it is empty, which is reported.
    let fresh = Sqlite::new();
    run_and_kill_child(&fresh.path(), || ());
    std::fs::remove_file(fresh.path().with_file_name("portico.db-wal")).unwrap();
    std::fs::write(fresh.path(), "").unwrap();
    let error = fresh.try_open(&|_| ()).await.err().unwrap();
    assert!(matches!(error, OpenError::Replaced { .. }), "{error}");
}

/// Copies the files that a process would leave if it were killed now.
fn copy_as_killed(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    for suffix in ["", "-wal", ".mark"] {
        let beside = |path: &Path| path.with_file_name(format!("portico.db{suffix}"));
        std::fs::copy(beside(from), beside(to)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_ahead_log_damaged_after_a_crash_is_detected() {
    const FRAME: usize = 24 + 4096;
    let backend = Sqlite::new();
    backend.open().await.close().await;
    let store = backend.open().await;
    let mut last = 0;
    for n in 0..100 {
        last = put(&*store, &key(&format!("a/{n}")), "x").await;
    }
    let log = std::fs::read(backend.path().with_file_name("portico.db-wal")).unwrap();
    let salts = log[16..24].to_vec();
    let frames = log[32..].chunks_exact(FRAME).take_while(|frame| frame[8..16] == salts).count();
    assert!(frames > 200, "{frames}");
    let page = |frame: usize| 32 + frame * FRAME + 1_000;
    // Damages the salt of the header, a page, the header of a frame, its checksum; and leaves one log intact.
    for at in [
        Some(20),
        Some(page(5)),
        Some(page(frames / 2)),
        Some(32 + 40 * FRAME),
        Some(32 + 50 * FRAME + 17),
        None,
    ] {
        let killed = Sqlite::new();
        copy_as_killed(&backend.path(), &killed.path());
        if let Some(at) = at {
            let mut damaged = log.clone();
            damaged[at] ^= 4;
            std::fs::write(killed.path().with_file_name("portico.db-wal"), damaged).unwrap();
        }
        let opened = killed.open().await;
        let epoch = opened.identity().epoch;
        let watch = opened.watch(Scope::all(&config_maps()), last);
        match at {
            None => assert!(epoch == 1 && opened.revision() == last),
            Some(at) => {
                assert!(epoch == 2 && opened.revision() > last, "{at}: epoch {epoch}");
                assert!(matches!(watch, Err(WatchError::Compacted { .. })), "{at}");
            }
        }
    }
    // A power failure cuts off the last transaction, or leaves parts of it.
    for at in [page(frames - 1), page(frames - 2)] {
        let killed = Sqlite::new();
        copy_as_killed(&backend.path(), &killed.path());
        let mut cut = log.clone();
        cut[at..at + 100].fill(0);
        std::fs::write(killed.path().with_file_name("portico.db-wal"), cut).unwrap();
        assert_eq!(killed.open().await.identity().epoch, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_restore_is_rejected_and_can_be_repeated() {
    let backend = Sqlite::new();
    let store = backend.open().await;
    put(&*store, &key("a/1"), "x").await;
    let file = backend.path().with_file_name("backup");
    copy_database(&backend.path(), &file).await;
    put(&*store, &key("a/2"), "x").await;
    store.close().await;
    drop(store);
    // The restore fails between the copy and the rename: a directory cannot be removed as a file.
    let name = |name: &str| backend.path().with_file_name(name);
    let new = name("portico.db.restoring");
    std::fs::create_dir(name("portico.db-shm")).unwrap();
    assert!(matches!(restore(&file, &backend.path(), 1).await, Err(BackupError::File { .. })));
    std::fs::remove_dir(name("portico.db-shm")).unwrap();
    let error = backend.try_open(&|_| ()).await.err().unwrap().to_string();
    assert!(error.contains("epoch 1, expected epoch 2"), "{error}");
    // The same failure after the old database was renamed.
    std::fs::remove_file(backend.path()).unwrap();
    let error = backend.try_open(&|_| ()).await.err().unwrap().to_string();
    assert!(error.contains("empty database, expected revision 4"), "{error}");
    // The remaining copy is not deleted when it is the source.
    let refused = restore(&new, &backend.path(), 1).await.unwrap_err();
    assert!(refused.to_string().contains("left by an interrupted restore"), "{refused}");
    assert!(new.exists());
    restore(&file, &backend.path(), 1).await.unwrap();
    assert_eq!(lines_of(&*backend.open().await).await, ["a/1@2=x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_epoch_requires_enough_revisions() {
    let (backend, target) = (Sqlite::new(), Sqlite::new());
    let store = backend.open().await;
    put(&*store, &key("a/1"), "x").await;
    store.close().await;
    let refused = restore(&backend.path(), &target.path(), i64::MAX - 1).await;
    assert!(matches!(refused, Err(BackupError::Open(OpenError::Exhausted { .. }))), "{refused:?}");
    assert!(!target.path().with_file_name("portico.db.mark").exists());
}
