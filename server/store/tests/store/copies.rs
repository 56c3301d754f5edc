//! Tests of portable backups, and of migrations between all engines during writes.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use portico_store::{
    ArchiveCursor, ArchivePart, Backup, BackupSummary, Changes, CopyError, CopySource, CopyTarget,
    EtcdSource, EtcdSwitch, EtcdTarget, Key, Migration, OpenError, PostgresSource, PostgresSwitch,
    PostgresTarget, Precondition, Resource, RestoreOptions, Scope, Seal, SqliteSource, SqliteTarget, Store,
    StoreExtent, StoreSwitch, StoredState, Txn, TxnError, WatchError, WriteSwitch, back_up, check_backup,
    migrate, restore_from,
};

use crate::etcd::{Etcd, codec};
use crate::harness::*;
use crate::postgres::Postgres;

/// Number of concurrent writers.
const CALLERS: usize = 6;
pub const BUMP: i64 = 1_000;
/// Maximum time without writes: far more than needed, for busy machines.
const MAX_DOWNTIME: Duration = Duration::from_secs(5);

/// Location of a store of any engine.
pub enum StoreLocation {
    Sqlite(Sqlite),
    Postgres(Postgres<'static>),
    Etcd(Etcd),
}

/// Constructors of a location for each engine; `None` if the engine is not installed.
const ENGINES: [fn() -> Option<StoreLocation>; 3] = [
    || Some(StoreLocation::Sqlite(Sqlite::new())),
    || Postgres::direct().map(StoreLocation::Postgres),
    || Etcd::new().map(StoreLocation::Etcd),
];

impl StoreLocation {
    pub fn all() -> impl Iterator<Item = Self> {
        ENGINES.into_iter().filter_map(|engine| engine())
    }

    /// Locations that change nothing before a copy is complete, and that preserve revisions.
    pub fn databases() -> impl Iterator<Item = Self> {
        Self::all().filter(|place| !place.assigns_revisions())
    }

    fn assigns_revisions(&self) -> bool {
        matches!(self, Self::Etcd(_))
    }

    pub async fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(sqlite) => sqlite.open().await,
            Self::Postgres(postgres) => postgres.open().await,
            Self::Etcd(etcd) => etcd.open().await,
        }
    }

    /// Converts lines of objects in the source to the lines expected here.
    fn expected_lines(&self, lines: &[String]) -> Vec<String> {
        let lines = lines.iter().cloned();
        if self.assigns_revisions() { lines.map(without_revision).collect() } else { lines.collect() }
    }

    /// Opens a source in another process without encryption keys.
    pub async fn source(&self) -> Arc<dyn CopySource> {
        match self {
            Self::Sqlite(sqlite) => Arc::new(SqliteSource::open(&sqlite.path(), Seal::none()).await.unwrap()),
            Self::Postgres(postgres) => {
                Arc::new(PostgresSource::open(postgres.settings(), Seal::none()).await.unwrap())
            }
            Self::Etcd(etcd) => {
                Arc::new(EtcdSource::open(&etcd.settings(), codec(Seal::none())).await.unwrap())
            }
        }
    }

    pub async fn target(&self, store_id: &str, force: bool) -> Result<Box<dyn CopyTarget>, CopyError> {
        Ok(match self {
            Self::Sqlite(sqlite) => Box::new(SqliteTarget::open(&sqlite.path(), store_id, force).await?),
            Self::Postgres(postgres) => Box::new(PostgresTarget::open(postgres.settings(), force).await?),
            Self::Etcd(etcd) => {
                Box::new(EtcdTarget::open(&etcd.settings(), codec(Seal::none()), 0, force).await?)
            }
        })
    }
}

fn things() -> Resource {
    Resource::new("example.com", "things")
}

/// Converts `path@revision=text` to `path=text`.
fn without_revision(line: String) -> String {
    match (line.rsplit_once('@'), line.rsplit_once('=')) {
        (Some((path, _)), Some((_, text))) => format!("{path}={text}"),
        _ => line,
    }
}

/// Writes objects of two resources with unusual names, owners, changes and deletions.
pub async fn fill(store: &dyn Store) {
    for n in 0..40 {
        let key = key(&format!("a/{n}"));
        put(store, &key, "0").await;
        if n % 3 == 0 {
            put(store, &key, "1").await;
        }
        if n % 5 == 0 {
            delete(store, &key).await;
        }
    }
    let odd = Key::new(&things(), "", "a\0b\u{1}'ä");
    let put = portico_store::Change::Put(value_with_owners(&odd, "odd", &["uid-1", "uid-1", "u\\u0000x"]));
    commit(store, Txn::single(odd, Precondition::Absent, put)).await.unwrap();
}

/// Returns everything in the store: objects with their revisions and owners.
pub async fn all_of(store: &dyn Store) -> Vec<String> {
    let mut all = Vec::new();
    for resource in [config_maps(), things()] {
        all.extend(lines(store.snapshot(&resource).await.unwrap().iter()));
    }
    for owner in ["uid-1", "u\0x"] {
        let named = store.dependents(owner).await.unwrap();
        all.extend(named.iter().map(|key| format!("{owner:?} owns {key}")));
    }
    all
}

pub fn file_in(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("backup")
}

pub fn backup_of(file: &Path) -> Backup<'_> {
    Backup { file, revision: None, history: true, now: 1, portico: "test" }
}

pub fn restore_options(bump: i64) -> RestoreOptions {
    RestoreOptions { bump, history: true }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_restores_into_every_engine_as_a_new_epoch() {
    for from in StoreLocation::all() {
        let (folder, store) = (tempfile::tempdir().unwrap(), from.open().await);
        fill(&*store).await;
        let (file, expected) = (file_in(&folder), all_of(&*store).await);
        let summary = back_up(&*from.source().await, &backup_of(&file)).await.unwrap();
        assert_eq!(summary.header.revision, store.revision());
        assert_eq!(check_backup(&file).unwrap(), (summary.header.clone(), summary.counts));
        assert!(expected.iter().any(|line| line.contains(" owns ")));
        for to in StoreLocation::all() {
            let target = to.target(&summary.header.store_id, false).await.unwrap();
            let restored = restore_from(&file, target, restore_options(BUMP)).await.unwrap();
            assert_eq!(restored.extent.identity.epoch, 2);
            let begins = restored.extent.revision;
            assert!(
                begins == summary.header.revision + BUMP
                    || to.assigns_revisions() && begins > summary.header.revision
            );
            let target_store = to.open().await;
            assert_eq!(target_store.identity(), &restored.extent.identity);
            assert_eq!(to.expected_lines(&all_of(&*target_store).await), to.expected_lines(&expected));
            let old = target_store.watch(Scope::all(&config_maps()), summary.header.revision);
            assert!(matches!(old, Err(WatchError::Compacted { .. })));
            // The store accepts writes, and deletes superseded states.
            let written = put(&*target_store, &key("a/1"), "later").await;
            assert!(written > restored.extent.revision);
            target_store.compact(written).await.unwrap();
            target_store.close().await;
        }
    }
}

/// Writes from many callers until it is stopped or writes are rejected. Returns the acknowledged writes by revision.
async fn storm(stores: &[Arc<dyn Store>], stop: &AtomicBool) -> BTreeMap<i64, (String, String)> {
    let caller = async |caller: usize| {
        let (store, mut acknowledged) = (&*stores[caller % stores.len()], Vec::new());
        for n in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let (key, text) = (key(&format!("w/{caller}-{}", n % 7)), n.to_string());
            let change = portico_store::Change::Put(value(&key, &text));
            match commit(store, Txn::single(key.clone(), Precondition::Any, change)).await {
                Ok(committed) => acknowledged.push((committed.revision, (key.path().to_owned(), text))),
                Err(TxnError::ReadOnly(_)) => break,
                Err(error) => panic!("{error}"),
            }
        }
        acknowledged
    };
    futures::future::join_all((0..CALLERS).map(caller)).await.into_iter().flatten().collect()
}

/// Returns the objects of a storm at a revision.
fn objects_at(acknowledged: &BTreeMap<i64, (String, String)>, until: i64) -> Vec<String> {
    let mut objects = BTreeMap::new();
    for (revision, (path, text)) in acknowledged.range(..=until) {
        objects.insert(path.clone(), format!("{path}@{revision}={text}"));
    }
    objects.into_values().collect()
}

async fn storm_objects(store: &dyn Store) -> Vec<String> {
    let all = lines(store.snapshot(&config_maps()).await.unwrap().iter());
    all.into_iter().filter(|line| line.starts_with("w/")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_taken_during_writes_is_the_state_of_one_revision() {
    for from in StoreLocation::all() {
        let (folder, store) = (tempfile::tempdir().unwrap(), from.open().await);
        let (source, stop) = (PagedSource::slow(from.source().await), AtomicBool::new(false));
        let backups = async {
            let mut made = Vec::new();
            for n in 0..3 {
                store.wait_for_revision(store.revision() + 40).await.unwrap();
                let file = folder.path().join(n.to_string());
                made.push((back_up(&source, &backup_of(&file)).await.unwrap(), file));
            }
            stop.store(true, Ordering::Relaxed);
            made
        };
        let stores = [store.clone()];
        let (acknowledged, made) = tokio::join!(storm(&stores, &stop), backups);
        for (done, file) in made {
            let to = Sqlite::new();
            let target = SqliteTarget::open(&to.path(), &done.header.store_id, false).await.unwrap();
            restore_from(&file, Box::new(target), restore_options(BUMP)).await.unwrap();
            let restored = storm_objects(&*to.open().await).await;
            assert_eq!(restored, objects_at(&acknowledged, done.header.revision));
            assert!(done.header.revision < store.revision());
        }
    }
}

/// Source that returns few states at a time, and fails after a number of pages.
pub struct PagedSource {
    source: Arc<dyn CopySource>,
    pages: AtomicUsize,
}

impl PagedSource {
    pub fn slow(source: Arc<dyn CopySource>) -> Self {
        Self { source, pages: AtomicUsize::new(usize::MAX) }
    }

    pub fn failing_after(source: Arc<dyn CopySource>, pages: usize) -> Self {
        Self { source, pages: AtomicUsize::new(pages) }
    }

    async fn next(&self, revision: i64, after: Option<&Key>) -> Result<Vec<StoredState>, CopyError> {
        if self.pages.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(CopyError::Store { place: "test".to_owned(), reason: "cut off".to_owned() });
        }
        let mut states = self.source.states(revision, after).await?;
        states.truncate(5);
        Ok(states)
    }

    async fn next_archive(&self, revision: i64, after: ArchiveCursor) -> Result<ArchivePart, CopyError> {
        let mut part = self.source.archive(revision, after).await?;
        // The first request reads the contents of the archive.
        if after != ArchiveCursor::END && self.pages.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(CopyError::Store { place: "test".to_owned(), reason: "cut off".to_owned() });
        }
        part.states.truncate(5);
        part.marks.truncate(1);
        Ok(part)
    }
}

impl CopySource for PagedSource {
    fn extent(&self) -> BoxFuture<'_, Result<StoreExtent, CopyError>> {
        self.source.extent()
    }

    fn states<'a>(
        &'a self,
        revision: i64,
        after: Option<&'a Key>,
    ) -> BoxFuture<'a, Result<Vec<StoredState>, CopyError>> {
        Box::pin(self.next(revision, after))
    }

    fn changes(&self, after: i64) -> BoxFuture<'_, Result<Changes, CopyError>> {
        self.source.changes(after)
    }

    fn archive(&self, revision: i64, after: ArchiveCursor) -> BoxFuture<'_, Result<ArchivePart, CopyError>> {
        Box::pin(self.next_archive(revision, after))
    }

    fn revision_at(&self, time: i64) -> BoxFuture<'_, Result<i64, CopyError>> {
        self.source.revision_at(time)
    }

    fn max_revision_drift(&self) -> i64 {
        self.source.max_revision_drift()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_backup_resumes_at_its_revision() {
    for from in StoreLocation::all() {
        let (folder, store) = (tempfile::tempdir().unwrap(), from.open().await);
        fill(&*store).await;
        let (file, whole) = (file_in(&folder), folder.path().join("whole"));
        let source = from.source().await;
        back_up(&PagedSource::slow(source.clone()), &backup_of(&whole)).await.unwrap();
        back_up(&PagedSource::failing_after(source.clone(), 3), &backup_of(&file)).await.unwrap_err();
        assert!(!file.exists());
        // Appends half a block, as after a crash.
        let partial = folder.path().join("backup.partial");
        let mut bytes = std::fs::read(&partial).unwrap();
        bytes.extend_from_slice(b"S\0\0\0");
        std::fs::write(&partial, bytes).unwrap();
        portico_kit::platform::set_mode(&partial, 0o644).unwrap();
        for n in 0..10 {
            put(&*store, &key(&format!("a/{n}")), "changed during the backup").await;
        }
        let summary: BackupSummary =
            back_up(&PagedSource::slow(source.clone()), &backup_of(&file)).await.unwrap();
        assert_eq!((summary.resumed_objects, summary.restart_reason), (15, None));
        assert_eq!(std::fs::read(&file).unwrap(), std::fs::read(&whole).unwrap());
        assert!(!partial.exists());
        let mode = portico_kit::platform::mode(&std::fs::metadata(&file).unwrap());
        assert_eq!(mode, 0o600, "other users can read the backup");
        assert!(matches!(back_up(&*source, &backup_of(&file)).await, Err(CopyError::Exists(_))));

        // A backup of a compacted revision starts over, and reports it.
        std::fs::remove_file(&file).unwrap();
        back_up(&PagedSource::failing_after(source.clone(), 3), &backup_of(&file)).await.unwrap_err();
        let revision = put(&*store, &key("a/1"), "last").await;
        store.compact(revision).await.unwrap();
        let summary = back_up(&*source, &backup_of(&file)).await.unwrap();
        assert_eq!((summary.resumed_objects, summary.header.revision), (0, revision));
        assert!(summary.restart_reason.unwrap().contains("is no longer retained"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_in_place_of_a_partial_backup_is_not_followed() {
    let (folder, backend) = (tempfile::tempdir().unwrap(), Sqlite::new());
    let store = backend.open().await;
    fill(&*store).await;
    let other_file = folder.path().join("elsewhere");
    std::fs::write(&other_file, "content of another file").unwrap();
    portico_kit::platform::symlink(&other_file, folder.path().join("backup.partial")).unwrap();
    let refused = back_up(&*store.copy_source(), &backup_of(&file_in(&folder))).await;
    assert!(matches!(refused, Err(CopyError::File { .. })), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&other_file).unwrap(), "content of another file");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_past_revision_can_be_backed_up_until_it_is_compacted() {
    for from in StoreLocation::all() {
        let (folder, store) = (tempfile::tempdir().unwrap(), from.open().await);
        fill(&*store).await;
        let (revision, then) = (store.revision(), all_of(&*store).await);
        for n in 0..40 {
            put(&*store, &key(&format!("a/{n}")), "later").await;
        }
        let (file, source) = (file_in(&folder), from.source().await);
        let at = |revision| Backup { revision: Some(revision), ..backup_of(&file) };
        let future = back_up(&*source, &at(store.revision() + 1)).await;
        assert!(matches!(future, Err(CopyError::Future { .. })));
        let summary = back_up(&*source, &at(revision)).await.unwrap();
        let to = Sqlite::new();
        let target = SqliteTarget::open(&to.path(), &summary.header.store_id, false).await.unwrap();
        restore_from(&file, Box::new(target), restore_options(BUMP)).await.unwrap();
        assert_eq!(all_of(&*to.open().await).await, then);
        std::fs::remove_file(&file).unwrap();
        store.compact(revision + 1).await.unwrap();
        let result = back_up(&*source, &at(revision)).await;
        assert!(
            matches!(result, Err(CopyError::Compacted { oldest, .. }) if oldest == revision + 1),
            "{result:?}"
        );
        assert!(!folder.path().join("backup.partial").exists());
    }
}

/// Migrates a store while callers write through several processes. Checks that the new store continues where the old one ended.
async fn move_during_writes(
    from: &StoreLocation,
    stores: &[Arc<dyn Store>],
    switch: &dyn WriteSwitch,
    to: &StoreLocation,
) {
    fill(&*stores[0]).await;
    let (source, stop) = (PagedSource::slow(from.source().await), AtomicBool::new(false));
    let identity = stores[0].identity().clone();
    let mut watched = stores[0].watch(Scope::all(&config_maps()), stores[0].revision()).unwrap();
    let moving = async {
        stores[0].wait_for_revision(stores[0].revision() + 20).await.unwrap();
        let target = to.target(&identity.store_id, false).await.unwrap();
        let migration = Migration { source: &source, switch, reason: "it was moved", history: true };
        migrate(&migration, target, &mut |_| ()).await.unwrap()
    };
    let (acknowledged, moved) = tokio::join!(storm(stores, &stop), moving);
    writeln!(
        std::io::stdout(),
        "writes were refused for {:?}, {} changes",
        moved.write_downtime,
        moved.changes
    )
    .unwrap();
    assert!(moved.write_downtime < MAX_DOWNTIME, "{:?}", moved.write_downtime);
    assert!(moved.changes > 0);
    let target_store = to.open().await;
    let (here, found) = (all_of(&*stores[0]).await, all_of(&*target_store).await);
    assert_eq!(to.expected_lines(&found), to.expected_lines(&here));
    assert_eq!(
        to.expected_lines(&storm_objects(&*target_store).await),
        to.expected_lines(&objects_at(&acknowledged, i64::MAX))
    );
    // The old store stays read-only, also after a restart; the new one accepts writes.
    let refused = commit(&*stores[0], Txn::create(key("a/new"), value(&key("a/new"), "1"))).await;
    assert!(matches!(refused, Err(TxnError::ReadOnly(reason)) if reason == "it was moved"));
    assert_eq!(moved.is_new_epoch, to.assigns_revisions());
    if moved.is_new_epoch {
        assert_eq!(
            (&target_store.identity().store_id, target_store.identity().epoch),
            (&identity.store_id, 2)
        );
        let old = target_store.watch(Scope::all(&config_maps()), *acknowledged.keys().last().unwrap());
        assert!(matches!(old, Err(WatchError::Compacted { .. })));
        return assert!(put(&*target_store, &key("a/new"), "1").await > stores[0].revision());
    }
    assert_eq!((target_store.identity(), target_store.revision()), (&identity, moved.extent.revision));
    // A watcher resumes at the new store: it has seen half of the writes at the old one.
    let seen = take(&mut watched, acknowledged.len() / 2).await;
    let last = seen.last().unwrap().revision();
    // Writes from before the copy have no history in the new store.
    let from = last.max(target_store.compacted());
    let rest = acknowledged.range(from + 1..).count();
    let mut goes_on = target_store.watch(Scope::all(&config_maps()), from).unwrap();
    let seen_there = take(&mut goes_on, rest).await;
    let revisions: Vec<i64> = seen_there.iter().map(|event| event.revision()).collect();
    assert_eq!(revisions, acknowledged.range(from + 1..).map(|(revision, _)| *revision).collect::<Vec<_>>());
    assert!(put(&*target_store, &key("a/new"), "1").await > moved.extent.revision);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_can_be_migrated_to_every_engine_during_writes() {
    for engine in ENGINES {
        for to in StoreLocation::all() {
            let Some(from) = engine() else { continue };
            let stores = [from.open().await];
            let switch = StoreSwitch(stores[0].clone());
            move_during_writes(&from, &stores, &switch, &to).await;
            stores[0].close().await;
            let again = from.open().await;
            let refused = commit(&*again, Txn::create(key("a/new"), value(&key("a/new"), "1"))).await;
            assert!(matches!(refused, Err(TxnError::ReadOnly(_))));
            StoreSwitch(again.clone()).set_read_only(None).await.unwrap();
            put(&*again, &key("a/new"), "1").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_of_all_control_services_of_a_database_are_stopped() {
    for from in StoreLocation::all() {
        let switch: Box<dyn WriteSwitch> = match &from {
            // A file has only one process.
            StoreLocation::Sqlite(_) => continue,
            StoreLocation::Postgres(postgres) => Box::new(PostgresSwitch(postgres.settings())),
            StoreLocation::Etcd(etcd) => {
                Box::new(EtcdSwitch::open(&etcd.settings(), codec(Seal::none())).await.unwrap())
            }
        };
        let stores = [from.open().await, from.open().await, from.open().await];
        move_during_writes(&from, &stores, &*switch, &StoreLocation::Sqlite(Sqlite::new())).await;
        let stopped = switch.set_read_only(Some("again")).await.unwrap();
        assert_eq!(
            switch.set_read_only(Some("again")).await.unwrap(),
            stopped,
            "stopping again returns the same revision"
        );
        assert!(switch.set_read_only(None).await.unwrap() > stopped);
        for (n, store) in stores.iter().enumerate() {
            put(&**store, &key(&format!("a/after-{n}")), "1").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_migration_changes_neither_store() {
    for to in StoreLocation::databases() {
        let from = Sqlite::new();
        let store = from.open().await;
        fill(&*store).await;
        let source = PagedSource::failing_after(store.copy_source(), 4);
        let switch = StoreSwitch(store.clone());
        let migration = Migration { source: &source, switch: &switch, reason: "moved", history: true };
        let target = to.target(&store.identity().store_id, false).await.unwrap();
        migrate(&migration, target, &mut |_| ()).await.unwrap_err();
        put(&*store, &key("a/after"), "1").await;
        let target_store = to.open().await;
        assert_ne!(target_store.identity(), store.identity());
        assert_eq!(target_store.object_counts().await.unwrap(), []);
    }
}

/// Returns the target after the connections of a closed store have ended.
async fn target_after_closing(
    to: &StoreLocation,
    store_id: &str,
    force: bool,
) -> Result<Box<dyn CopyTarget>, CopyError> {
    loop {
        match to.target(store_id, force).await {
            Err(CopyError::InUse { .. }) => tokio::task::yield_now().await,
            target => return target,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_migration_replaces_newer_commits_only_with_force_and_as_a_new_epoch() {
    for to in StoreLocation::databases() {
        let from = Sqlite::new();
        let store = from.open().await;
        fill(&*store).await;
        let (source, switch) = (store.copy_source(), StoreSwitch(store.clone()));
        let (identity, expected) = (store.identity().clone(), all_of(&*store).await);
        let migration = Migration { source: &*source, switch: &switch, reason: "moved", history: true };
        // A target without later writes is replaced, as after an interrupted migration.
        for force in [false, matches!(to, StoreLocation::Postgres(_))] {
            let target = to.target(&identity.store_id, force).await.unwrap();
            let moved = migrate(&migration, target, &mut |_| ()).await.unwrap();
            assert_eq!(moved.extent.identity, identity);
        }
        let target_store = to.open().await;
        let written = put(&*target_store, &key("a/served"), "1").await;
        let served = all_of(&*target_store).await;
        target_store.close().await;
        drop(target_store);
        let refused = match target_after_closing(&to, &identity.store_id, false).await {
            Ok(target) => migrate(&migration, target, &mut |_| ()).await.unwrap_err(),
            Err(refused) => refused,
        };
        match &to {
            StoreLocation::Sqlite(_) => assert!(
                matches!(&refused, CopyError::TargetIsNewer { existing, source_extent } if existing.revision == written
                    && source_extent.revision == store.revision()),
                "{refused}"
            ),
            _ => assert!(matches!(&refused, CopyError::NotEmpty { .. }), "{refused}"),
        }
        let target_store = to.open().await;
        assert_eq!((target_store.identity(), all_of(&*target_store).await), (&identity, served));
        target_store.close().await;
        drop(target_store);
        let target = target_after_closing(&to, &identity.store_id, true).await.unwrap();
        let moved = migrate(&migration, target, &mut |_| ()).await.unwrap();
        assert!(moved.is_new_epoch && moved.extent.revision > written, "{moved:?}");
        let target_store = to.open().await;
        assert_eq!(
            (target_store.identity().epoch, all_of(&*target_store).await),
            (identity.epoch + 1, expected)
        );
        let old = target_store.watch(Scope::all(&config_maps()), written);
        assert!(matches!(old, Err(WatchError::Compacted { .. })));
        assert!(put(&*target_store, &key("a/again"), "1").await > written);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_existing_store_is_replaced_only_with_force() {
    let (folder, from) = (tempfile::tempdir().unwrap(), Sqlite::new());
    let store = from.open().await;
    fill(&*store).await;
    let file = file_in(&folder);
    back_up(&*store.copy_source(), &backup_of(&file)).await.unwrap();
    let (store_id, expected) = (store.identity().store_id.clone(), all_of(&*store).await);
    for to in StoreLocation::databases() {
        let target_store = to.open().await;
        put(&*target_store, &key("other/1"), "1").await;
        let in_use = to.target(&store_id, true).await.err().unwrap();
        assert!(matches!(in_use, CopyError::InUse { .. }), "{in_use}");
        let (other, before) = (target_store.identity().clone(), all_of(&*target_store).await);
        target_store.close().await;
        drop(target_store);
        let refused = loop {
            // Connections end a moment after their store.
            match to.target(&store_id, false).await.err().unwrap() {
                CopyError::InUse { .. } => tokio::task::yield_now().await,
                refused => break refused,
            }
        };
        assert!(
            matches!(&refused, CopyError::NotEmpty { store_id, .. } if *store_id == other.store_id),
            "{refused}"
        );
        // An interrupted copy leaves everything unchanged.
        let mut target = to.target(&store_id, true).await.unwrap();
        target.add(store.copy_source().states(store.revision(), None).await.unwrap()).await.unwrap();
        drop(target);
        let target_store = to.open().await;
        assert_eq!((target_store.identity(), all_of(&*target_store).await), (&other, before));
        target_store.close().await;
        drop(target_store);
        let target = loop {
            match to.target(&store_id, true).await {
                Err(CopyError::InUse { .. }) => tokio::task::yield_now().await,
                target => break target.unwrap(),
            }
        };
        let restored = restore_from(&file, target, restore_options(BUMP)).await.unwrap();
        let target_store = to.open().await;
        assert_eq!(
            (target_store.identity(), all_of(&*target_store).await),
            (&restored.extent.identity, expected.clone())
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_backup_replaces_nothing() {
    let (folder, from) = (tempfile::tempdir().unwrap(), Sqlite::new());
    let store = from.open().await;
    fill(&*store).await;
    let file = file_in(&folder);
    let summary = back_up(&PagedSource::slow(store.copy_source()), &backup_of(&file)).await.unwrap();
    let whole = std::fs::read(&file).unwrap();
    for to in StoreLocation::databases() {
        for at in [whole.len() / 2, whole.len() - 1] {
            std::fs::write(&file, &whole[..at]).unwrap();
            let target = to.target(&summary.header.store_id, false).await.unwrap();
            let error = restore_from(&file, target, restore_options(BUMP)).await.unwrap_err().to_string();
            assert!(error.contains(&format!("truncated at byte {at}")), "{error}");
            assert!(error.contains("intact up to "), "{error}");
        }
        let target_store = to.open().await;
        assert_eq!(target_store.object_counts().await.unwrap(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migrated_store_can_be_migrated_back_as_a_new_epoch() {
    let from = Sqlite::new();
    let store = from.open().await;
    put(&*store, &key("a/1"), "1").await;
    StoreSwitch(store.clone()).set_read_only(Some("moved")).await.unwrap();
    store.close().await;
    drop(store);
    let restored = portico_store::restore(&from.path(), &from.path(), BUMP).await.unwrap();
    assert_eq!(restored.epoch, 2);
    put(&*from.open().await, &key("a/2"), "1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_fails_if_the_file_is_served_during_the_read_and_can_be_repeated() {
    let (folder, from) = (tempfile::tempdir().unwrap(), Sqlite::new());
    let store = from.open().await;
    fill(&*store).await;
    store.close().await;
    drop(store);
    let at_rest = SqliteSource::open(&from.path(), Seal::none()).await.unwrap();
    let store = from.open().await;
    let (file, refused) = (file_in(&folder), at_rest.extent().await);
    assert!(matches!(refused, Err(CopyError::Served(_))), "{refused:?}");
    let served = SqliteSource::open(&from.path(), Seal::none()).await.unwrap();
    let summary = back_up(&served, &backup_of(&file)).await.unwrap();
    assert_eq!(summary.header.revision, store.revision());
    assert!(matches!(from.try_open(&|_| ()).await, Err(OpenError::InUse { .. })));
}
