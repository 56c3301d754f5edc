//! Tests of the archive in backups, restores and migrations, between all databases that have one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portico_store::{
    ArchiveContents, ArchiveCursor, Backup, CopyError, CopySource, Doctor, Finding, MetadataIndexer,
    Migration, PastQuery, Precondition, RestoreOptions, Scope, Settings, SqliteTarget, Store, StoreError,
    StoreSwitch, Txn, back_up, check_backup, migrate, restore, restore_from,
};
use portico_tests::wait_until;

use crate::archive::{enable_archive, list_at_revision, past_states, state_lines, write};
use crate::copies::{BUMP, PagedSource, StoreLocation, backup_of, file_in, restore_options};
use crate::harness::*;
use crate::unreadable::execute;

/// Disables periodic compaction, so that history stays in the log.
fn disable_compaction(settings: &mut Settings) {
    enable_archive(settings);
    settings.compaction_interval = Duration::from_secs(3_600);
}

impl StoreLocation {
    async fn open_archiving(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(sqlite) => sqlite.open_with(&enable_archive).await,
            Self::Postgres(postgres) => postgres.open_with(&enable_archive).await,
            Self::Etcd(etcd) => etcd.open().await,
        }
    }
}

async fn contents(source: &dyn CopySource) -> ArchiveContents {
    source.archive(i64::MAX, ArchiveCursor::END).await.unwrap().contents.unwrap()
}

/// Waits until the archived resources are recorded.
async fn wait_until_archived(source: &dyn CopySource) {
    wait_until("nothing is archived", async || !contents(source).await.is_empty()).await;
}

/// Past states of objects, and lists at each revision.
#[derive(Debug, PartialEq)]
struct RecordedHistory {
    states: Vec<Vec<String>>,
    written: Vec<Option<i64>>,
    lists: Vec<Vec<String>>,
}

async fn history(store: &dyn Store, last: i64) -> RecordedHistory {
    let mut history = RecordedHistory { states: Vec::new(), written: Vec::new(), lists: Vec::new() };
    for path in ["a/1", "a/2"] {
        let states = past_states(store, path).await;
        history.states.push(state_lines(&states));
        history.written.extend(states.iter().map(|state| state.written_at));
    }
    for revision in 2..=last {
        history.lists.push(lines(&store.list_past(list_at_revision(revision)).await.unwrap().records));
    }
    history
}

/// Returns a store whose history is in the archive up to revision 4 and in the log after that, with its current revision.
async fn filled(place: &StoreLocation) -> (Arc<dyn Store>, i64) {
    let store = place.open_archiving().await;
    write(&*store).await;
    wait_until_archived(&*place.source().await).await;
    store.compact(4).await.unwrap();
    let last = store.revision();
    (store, last)
}

async fn assert_revision_lost(store: &dyn Store, revision: i64, after: i64) {
    let list = store.list_past(list_at_revision(revision)).await;
    assert!(matches!(list, Err(StoreError::Lost { after: found, .. }) if found == after), "{list:?}");
    let states = PastQuery { key: key("a/1"), before: Some(revision + 1), limit: 1 };
    assert!(matches!(store.past_states(states).await, Err(StoreError::Lost { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_is_restored_from_a_backup_into_every_database() {
    for from in StoreLocation::databases() {
        let (folder, (store, last)) = (tempfile::tempdir().unwrap(), filled(&from).await);
        let expected = history(&*store, last).await;
        assert_eq!(expected.states[0], ["Added@6=5", "Deleted@5=gone", "Modified@4=3", "Added@2=1"]);
        assert!(expected.written.iter().all(Option::is_some), "{expected:?}");
        let file = file_in(&folder);
        let summary = back_up(&*from.source().await, &backup_of(&file)).await.unwrap();
        // Three past states of `a/1`, one of them a tombstone.
        assert_eq!((summary.counts.objects, summary.counts.past_states), (3, Some(3)));
        assert_eq!(check_backup(&file).unwrap(), (summary.header.clone(), summary.counts));
        let lost = put(&*store, &key("a/1"), "lost").await;
        for to in StoreLocation::databases() {
            let target = to.target(&summary.header.store_id, false).await.unwrap();
            let restored = restore_from(&file, target, restore_options(BUMP)).await.unwrap();
            assert_eq!((restored.objects, restored.past_states, restored.skipped_past_states), (3, 3, 0));
            let target_store = to.open_archiving().await;
            assert_eq!(history(&*target_store, last).await, expected);
            assert_revision_lost(&*target_store, lost, last).await;
            let begins = restored.extent.revision;
            assert_eq!(
                lines(&target_store.list_past(list_at_revision(begins)).await.unwrap().records).len(),
                2
            );
            // The store continues from the restored history.
            let written = put(&*target_store, &key("a/1"), "later").await;
            target_store.compact(written).await.unwrap();
            let states = state_lines(&past_states(&*target_store, "a/1").await);
            assert_eq!(states[0], format!("Modified@{written}=later"));
            assert_eq!(states[1..], expected.states[0]);
            assert_eq!(
                lines(&target_store.list_past(list_at_revision(last)).await.unwrap().records),
                expected.lists[last as usize - 2]
            );
            // A backup of the restored store contains the history as well.
            let second_backup = folder.path().join("again");
            let source = target_store.copy_source();
            wait_until_archived(&*source).await;
            back_up(&*source, &backup_of(&second_backup)).await.unwrap();
            let third = Sqlite::new();
            let target = SqliteTarget::open(&third.path(), &summary.header.store_id, false).await.unwrap();
            restore_from(&second_backup, Box::new(target), restore_options(BUMP)).await.unwrap();
            let third = third.open_with(&enable_archive).await;
            assert_eq!(state_lines(&past_states(&*third, "a/1").await), states);
            assert_revision_lost(&*third, lost, last).await;
            assert_revision_lost(&*third, written + 1, written).await;
            std::fs::remove_file(&second_backup).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_is_omitted_on_request_and_reported_if_the_target_has_no_archive() {
    let (folder, from) = (tempfile::tempdir().unwrap(), StoreLocation::Sqlite(Sqlite::new()));
    let (store, last) = filled(&from).await;
    let (without, with) = (folder.path().join("without"), folder.path().join("with"));
    let source = from.source().await;
    let summary = back_up(&*source, &Backup { history: false, ..backup_of(&without) }).await.unwrap();
    assert_eq!(summary.counts.past_states, None);
    assert!(std::fs::read(&without).unwrap().starts_with(b"PORTICO-BACKUP 1\n"));
    back_up(&*source, &backup_of(&with)).await.unwrap();
    let store_id = &store.identity().store_id;
    for to in StoreLocation::all() {
        for (file, history) in [(&without, true), (&with, false)] {
            let target = to.target(store_id, true).await.unwrap();
            let restored = restore_from(file, target, RestoreOptions { bump: BUMP, history }).await.unwrap();
            let left_behind = if history { 0 } else { 3 };
            assert_eq!((restored.past_states, restored.skipped_past_states), (0, left_behind));
            let target_store = to.open_archiving().await;
            assert_eq!(past_states(&*target_store, "a/1").await.len(), 1);
            assert!(matches!(
                target_store.list_past(list_at_revision(last)).await,
                Err(StoreError::Compacted { .. })
            ));
            target_store.close().await;
            drop(target_store);
            wait_until_closed(&to, store_id).await;
        }
    }
    let etcd = StoreLocation::all().find(|place| matches!(place, StoreLocation::Etcd(_)));
    let Some(etcd) = etcd else { return };
    let restored =
        restore_from(&with, etcd.target(store_id, false).await.unwrap(), restore_options(BUMP)).await;
    assert_eq!(restored.unwrap().skipped_past_states, 3);
    let switch = StoreSwitch(store.clone());
    let migration = Migration { source: &*source, switch: &switch, reason: "moved", history: true };
    let moved = migrate(&migration, etcd.target(store_id, true).await.unwrap(), &mut |_| ()).await.unwrap();
    assert!(moved.history_skipped && moved.past_states == 0, "{moved:?}");
}

/// Waits for the connections of a closed store, which end a moment after it.
async fn wait_until_closed(place: &StoreLocation, store_id: &str) {
    wait_until("the database stays in use", async || {
        !matches!(place.target(store_id, true).await, Err(CopyError::InUse { .. }))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_over_a_database_deletes_its_history() {
    let (folder, from) = (tempfile::tempdir().unwrap(), StoreLocation::Sqlite(Sqlite::new()));
    let store = from.open().await;
    put(&*store, &key("a/1"), "another store's").await;
    let file = file_in(&folder);
    back_up(&*store.copy_source(), &backup_of(&file)).await.unwrap();
    for to in StoreLocation::databases() {
        let (target_store, _) = filled(&to).await;
        target_store.close().await;
        drop(target_store);
        let store_id = &store.identity().store_id;
        wait_until_closed(&to, store_id).await;
        let target = to.target(store_id, true).await.unwrap();
        restore_from(&file, target, restore_options(BUMP)).await.unwrap();
        let target_store = to.open_archiving().await;
        assert_eq!(state_lines(&past_states(&*target_store, "a/1").await), ["Added@2=another store's"]);
    }
}

/// Writes to a few keys, with deletions and compactions in between. Returns the written revisions by path.
async fn storm(store: &dyn Store, stop: &std::sync::atomic::AtomicBool) -> BTreeMap<String, Vec<i64>> {
    let mut written: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for n in 0.. {
        if stop.load(std::sync::atomic::Ordering::Relaxed) {
            break;
        }
        let path = format!("w/{}", n % 5);
        let revision = match n % 35 {
            20..25 if written.contains_key(&path) => delete(store, &key(&path)).await,
            _ => {
                let change = portico_store::Change::Put(value(&key(&path), &n.to_string()));
                let txn = Txn::single(key(&path), Precondition::Any, change);
                commit(store, txn).await.unwrap().revision
            }
        };
        written.entry(path).or_default().push(revision);
        if n % 50 == 49 {
            store.compact(revision - 20).await.unwrap();
        }
    }
    written
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_during_compaction_contains_each_archived_state() {
    for from in StoreLocation::databases() {
        let (folder, store) = (tempfile::tempdir().unwrap(), from.open_archiving().await);
        put(&*store, &key("w/0"), "first").await;
        wait_until_archived(&*from.source().await).await;
        let source = PagedSource::slow(from.source().await);
        let stop = std::sync::atomic::AtomicBool::new(false);
        let file = file_in(&folder);
        let making = async {
            store.wait_for_revision(store.revision() + 300).await.unwrap();
            let done = loop {
                // The five objects are usually read before the next compaction.
                match back_up(&source, &backup_of(&file)).await {
                    Err(CopyError::Compacted { .. }) => {}
                    done => break done.unwrap(),
                }
            };
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            done
        };
        let (written, done) = tokio::join!(storm(&*store, &stop), making);
        let (to, last) = (Sqlite::new(), done.header.revision);
        let target = SqliteTarget::open(&to.path(), &done.header.store_id, false).await.unwrap();
        restore_from(&file, Box::new(target), restore_options(BUMP)).await.unwrap();
        let target_store = to.open_with(&disable_compaction).await;
        for (path, revisions) in written {
            let query = PastQuery { key: key(&path), before: None, limit: 100_000 };
            let mut found: Vec<i64> = target_store
                .past_states(query)
                .await
                .unwrap()
                .states
                .iter()
                .map(|state| state.revision())
                .collect();
            found.reverse();
            found.retain(|revision| *revision > 2);
            let expected: Vec<i64> = revisions.into_iter().filter(|revision| *revision <= last).collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_backup_resumes_within_its_archive() {
    for from in StoreLocation::databases() {
        let (folder, store) = (tempfile::tempdir().unwrap(), from.open_archiving().await);
        for n in 0..40 {
            put(&*store, &key(&format!("a/{}", n % 2)), &n.to_string()).await;
        }
        let source = from.source().await;
        wait_until_archived(&*source).await;
        let (file, whole) = (file_in(&folder), folder.path().join("whole"));
        back_up(&PagedSource::slow(source.clone()), &backup_of(&whole)).await.unwrap();
        // Fails after one page of objects, its end, and parts of the archive.
        back_up(&PagedSource::failing_after(source.clone(), 5), &backup_of(&file)).await.unwrap_err();
        let partial = folder.path().join("backup.partial");
        let error = check_backup(&partial).unwrap_err().to_string();
        assert!(error.contains("intact up to 2 objects and past state 15"), "{error}");
        // The log no longer contains these states; the archive does.
        let revision = put(&*store, &key("a/3"), "meanwhile").await;
        store.compact(revision).await.unwrap();
        let summary = back_up(&PagedSource::slow(source.clone()), &backup_of(&file)).await.unwrap();
        assert_eq!(
            (summary.resumed_objects, summary.restart_reason, summary.counts.past_states),
            (2, None, Some(38))
        );
        assert!(summary.header.revision < revision);
        assert_eq!(check_backup(&file).unwrap(), check_backup(&whole).unwrap());
        // A backup without history cannot resume one with history.
        std::fs::remove_file(&file).unwrap();
        back_up(&PagedSource::failing_after(source.clone(), 5), &backup_of(&file)).await.unwrap_err();
        let summary = back_up(&*source, &Backup { history: false, ..backup_of(&file) }).await.unwrap();
        assert!(summary.restart_reason.unwrap().contains("was made with history"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_is_moved_with_its_store() {
    for from in StoreLocation::databases() {
        for to in StoreLocation::databases() {
            let Some(from) = another(&from) else { continue };
            let (store, last) = filled(&from).await;
            let expected = history(&*store, last).await;
            let (source, switch) = (from.source().await, StoreSwitch(store.clone()));
            let migration = Migration { source: &*source, switch: &switch, reason: "moved", history: true };
            let target = to.target(&store.identity().store_id, false).await.unwrap();
            let moved = migrate(&migration, target, &mut |_| ()).await.unwrap();
            assert_eq!((moved.past_states, moved.history_skipped, moved.is_new_epoch), (3, false, false));
            let target_store = to.open_archiving().await;
            assert_eq!(history(&*target_store, last).await, expected);
            let written = put(&*target_store, &key("a/1"), "later").await;
            target_store.compact(written).await.unwrap();
            assert_eq!(state_lines(&past_states(&*target_store, "a/1").await)[1..], expected.states[0]);
            assert_eq!(history(&*target_store, last).await.lists, expected.lists);
        }
    }
}

/// Returns a new place of the same engine.
fn another(place: &StoreLocation) -> Option<StoreLocation> {
    StoreLocation::databases().find(|other| std::mem::discriminant(other) == std::mem::discriminant(place))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_the_file_keeps_history_in_a_new_epoch() {
    let (folder, from) = (tempfile::tempdir().unwrap(), StoreLocation::Sqlite(Sqlite::new()));
    let (store, last) = filled(&from).await;
    let expected = history(&*store, last).await;
    let (copy, database) = (folder.path().join("copy"), folder.path().join("portico.db"));
    let StoreLocation::Sqlite(sqlite) = &from else { unreachable!() };
    copy_database(&sqlite.path(), &copy).await;
    let lost = put(&*store, &key("a/1"), "lost").await;
    restore(&copy, &database, BUMP).await.unwrap();
    let restored = open_sqlite(database.clone(), &enable_archive).await.unwrap();
    assert_eq!(history(&restored, last).await, expected);
    assert_revision_lost(&restored, lost, last).await;
    assert!(restored.watch(Scope::all(&config_maps()), last).is_err());
    restored.close().await;
    let examined = examine(&database).await;
    assert_eq!(examined, Vec::<String>::new());
}

async fn examine(database: &Path) -> Vec<String> {
    let examined = Doctor::new(database, &MetadataIndexer).examine().await.unwrap();
    examined.findings.iter().map(Finding::to_string).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_finds_past_states_that_cannot_be_read_and_removes_them() {
    let location = StoreLocation::Sqlite(Sqlite::new());
    let (store, last) = filled(&location).await;
    store.close().await;
    drop(store);
    let StoreLocation::Sqlite(sqlite) = &location else { unreachable!() };
    assert_eq!(examine(&sqlite.path()).await, Vec::<String>::new());
    execute(sqlite, "UPDATE archive SET value = x'09' WHERE revision = 2").await;
    let text = "unreadable past state: configmaps/a/1 at revision 2: unknown value format 9";
    assert_eq!(examine(&sqlite.path()).await, [text]);
    Doctor::new(sqlite.path(), &MetadataIndexer).remove_unreadable().await.unwrap();
    assert_eq!(examine(&sqlite.path()).await, Vec::<String>::new());
    let store = sqlite.open_with(&enable_archive).await;
    // The past states of the log are in the archive now; incomplete revisions are rejected.
    assert_eq!(
        state_lines(&past_states(&*store, "a/1").await),
        ["Added@6=5", "Deleted@5=gone", "Modified@4=3"]
    );
    assert!(matches!(store.list_past(list_at_revision(3)).await, Err(StoreError::Compacted { oldest: 4 })));
    assert_eq!(lines(&store.list_past(list_at_revision(4)).await.unwrap().records), ["a/1@4=3", "a/2@3=2"]);
    assert_eq!(
        lines(&store.list_past(list_at_revision(last)).await.unwrap().records),
        ["a/1@6=5", "a/2@3=2"]
    );
    store.close().await;
    for (sql, text) in [
        (
            "UPDATE archive SET until = 3 WHERE revision = 4",
            "inconsistent: 1 past states end before they begin",
        ),
        (
            "UPDATE archive SET until = 900 WHERE revision = 4",
            "inconsistent: 1 past states are newer than the store's revision",
        ),
        (
            "UPDATE archive SET resource = 77 WHERE revision = 4",
            "inconsistent: 1 past states belong to no resource",
        ),
    ] {
        execute(sqlite, sql).await;
        assert!(examine(&sqlite.path()).await.iter().any(|found| found == text), "{sql}");
        execute(sqlite, "UPDATE archive SET until = 5, resource = (SELECT max(resource) FROM archived) WHERE revision = 4").await;
    }
}
