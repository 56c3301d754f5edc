//! Tests of the differences of copies of etcd: a restore that is not atomic, revisions that several objects share, and values
//! with another encryption.

use std::time::Duration;

use portico_store::{
    CopyError, CopyTarget, EtcdError, EtcdSource, EtcdTarget, Migration, Operation, Precondition, Scope,
    Seal, Store, StoreSwitch, Txn, WatchError, back_up, migrate, restore_from,
};

use crate::copies::{BUMP, PagedSource, StoreLocation, all_of, backup_of, file_in, fill, restore_options};
use crate::etcd::{Etcd, codec};
use crate::harness::*;
use crate::unopened::seal;

async fn target(etcd: &Etcd, force: bool) -> Result<EtcdTarget, CopyError> {
    EtcdTarget::open(&etcd.settings(), codec(Seal::none()), 0, force).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_restore_is_not_served_and_restarts_only_with_force() {
    let Some(etcd) = Etcd::new() else { return };
    let (folder, from) = (tempfile::tempdir().unwrap(), Sqlite::new());
    let store = from.open().await;
    fill(&*store).await;
    let (file, expected) = (file_in(&folder), all_of(&*store).await);
    back_up(&PagedSource::slow(store.copy_source()), &backup_of(&file)).await.unwrap();
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let error = restore_from(&file, Box::new(target(&etcd, false).await.unwrap()), restore_options(BUMP))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("truncated at byte"), "{error}");
    let opened = etcd.try_open(&|_| ()).await.err().unwrap();
    assert!(matches!(&opened, EtcdError::HalfRestored { .. }), "{opened}");
    let source = EtcdSource::open(&etcd.settings(), codec(Seal::none())).await.err().unwrap();
    assert!(matches!(&source, CopyError::HalfRestored(_)), "{source}");
    let second_attempt = target(&etcd, false).await.err().unwrap();
    assert!(second_attempt.to_string().contains("--force starts over"), "{second_attempt}");
    std::fs::write(&file, &whole).unwrap();
    let to = Box::new(target(&etcd, true).await.unwrap());
    restore_from(&file, to, restore_options(BUMP)).await.unwrap();
    let there = all_of(&*etcd.open().await).await;
    let names = |lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| line.split('@').next().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&there), names(&expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_ends_processes_that_serve_the_store_and_replaces_its_content() {
    let Some(etcd) = Etcd::new() else { return };
    let (folder, process) = (tempfile::tempdir().unwrap(), etcd.process().await);
    fill(&*process.store).await;
    let (file, identity) = (file_in(&folder), process.store.identity().clone());
    back_up(&*process.store.copy_source(), &backup_of(&file)).await.unwrap();
    put(&*process.store, &key("a/lost"), "1").await;
    let last = put(&*process.store, &key("a/1"), "changed").await;
    let refused = target(&etcd, false).await.err().unwrap();
    assert!(
        matches!(&refused, CopyError::NotEmpty { store_id, .. } if *store_id == identity.store_id),
        "{refused}"
    );
    let to = Box::new(target(&etcd, true).await.unwrap());
    let restored = restore_from(&file, to, restore_options(BUMP)).await.unwrap();
    let failed = tokio::time::timeout(Duration::from_secs(60), process.tasks.failed()).await.unwrap();
    assert!(failed.to_string().contains("a restore of the store has begun"), "{failed}");
    let target_store = etcd.open().await;
    assert_eq!((target_store.identity(), target_store.identity().epoch), (&restored.extent.identity, 2));
    let snapshot = target_store.snapshot(&config_maps()).await.unwrap();
    assert!(snapshot.get_path("a/lost").is_none());
    assert_eq!(text(snapshot.get_path("a/1").unwrap()), "0");
    let old = target_store.watch(Scope::all(&config_maps()), last);
    assert!(matches!(old, Err(WatchError::Compacted { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_concurrent_restores_the_later_one_succeeds() {
    let Some(etcd) = Etcd::new() else { return };
    let from = Sqlite::new();
    let store = from.open().await;
    fill(&*store).await;
    let states = store.copy_source().states(store.revision(), None).await.unwrap();
    let mut first = target(&etcd, false).await.unwrap();
    first.add(states[..3].to_vec()).await.unwrap();
    let mut second = target(&etcd, true).await.unwrap();
    second.add(states[3..5].to_vec()).await.unwrap();
    let overtaken = first.add(states[5..].to_vec()).await.unwrap_err();
    assert!(matches!(&overtaken, CopyError::Overtaken(_)), "{overtaken}");
    Box::new(second).finish(store.copy_source().extent().await.unwrap()).await.unwrap();
    assert_eq!(etcd.open().await.snapshot(&config_maps()).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_far_behind_the_revisions_of_clients_is_rejected_and_a_near_one_catches_up() {
    let Some(etcd) = Etcd::new() else { return };
    let open =
        async |revision| EtcdTarget::open(&etcd.settings(), codec(Seal::none()), revision, false).await;
    let far = open(1_000_000_000).await.err().unwrap();
    assert!(far.to_string().contains("etcdutl snapshot restore --bump-revision"), "{far}");
    let (folder, from) = (tempfile::tempdir().unwrap(), Sqlite::new());
    let store = from.open().await;
    fill(&*store).await;
    let file = file_in(&folder);
    back_up(&*store.copy_source(), &backup_of(&file)).await.unwrap();
    let near = Box::new(open(5_000).await.unwrap());
    let restored = restore_from(&file, near, restore_options(5_000)).await.unwrap();
    assert!(restored.extent.revision > 5_000);
    let target_store = etcd.open().await;
    assert!(target_store.compacted() > 5_000 && target_store.revision() >= restored.extent.revision);
}

/// Writes objects with one shared revision, which are changed and deleted together.
async fn write_together(store: &dyn Store, round: &str) {
    let operations = ["t/1", "t/2", "t/3"].map(|path| {
        let change = match (path, round) {
            ("t/3", "2") => portico_store::Change::Delete(value(&key(path), round)),
            _ => portico_store::Change::Put(value(&key(path), round)),
        };
        Operation { key: key(path), precondition: Precondition::Any, change }
    });
    commit(store, Txn { operations: operations.to_vec() }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_with_a_shared_revision_get_distinct_ones_in_a_database_with_a_new_epoch() {
    for to in StoreLocation::databases() {
        let Some(etcd) = Etcd::new() else { return };
        let (folder, store) = (tempfile::tempdir().unwrap(), etcd.open().await);
        fill(&*store).await;
        write_together(&*store, "1").await;
        let file = file_in(&folder);
        let summary = back_up(&*store.copy_source(), &backup_of(&file)).await.unwrap();
        let other = Sqlite::new();
        let target = portico_store::SqliteTarget::open(&other.path(), &summary.header.store_id, false).await;
        restore_from(&file, Box::new(target.unwrap()), restore_options(BUMP)).await.unwrap();
        check_together(&*other.open().await, &["t/1=1", "t/2=1", "t/3=1"]).await;

        // The changes are made while the state is being copied.
        let (source, switch) = (PagedSource::slow(store.copy_source()), StoreSwitch(store.clone()));
        let migration = Migration { source: &source, switch: &switch, reason: "it was moved", history: true };
        let target = to.target(&store.identity().store_id, false).await.unwrap();
        let (begun, mut began) = tokio::sync::oneshot::channel();
        let mut begun = Some(begun);
        let changing = async {
            (&mut began).await.unwrap();
            write_together(&*store, "2").await;
            put(&*store, &key("t/2"), "3").await;
        };
        let mut step = |_| {
            if let Some(begun) = begun.take() {
                begun.send(()).unwrap();
            }
        };
        let (moved, ()) = tokio::join!(migrate(&migration, target, &mut step), changing);
        let moved = moved.unwrap();
        assert!(moved.is_new_epoch);
        let target_store = to.open().await;
        assert_eq!((target_store.identity().epoch, target_store.revision()), (2, moved.extent.revision));
        let source_lines = lines(store.snapshot(&config_maps()).await.unwrap().iter());
        let source_lines: Vec<String> = source_lines
            .iter()
            .filter(|line| line.starts_with("t/"))
            .map(|line| format!("t/{}={}", &line[2..3], line.rsplit('=').next().unwrap()))
            .collect();
        check_together(&*target_store, &source_lines.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let old = target_store.watch(Scope::all(&config_maps()), store.revision());
        assert!(matches!(old, Err(WatchError::Compacted { .. })));
        // Only superseded states are deleted.
        let before = all_of(&*target_store).await;
        let written = put(&*target_store, &key("t/1"), "later").await;
        target_store.compact(written).await.unwrap();
        target_store.close().await;
        let after = all_of(&*to.open().await).await;
        assert_eq!(after.len(), before.len());
    }
}

/// Checks that exactly these objects exist, with distinct revisions.
async fn check_together(store: &dyn Store, expected: &[&str]) {
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    let mut revisions: Vec<i64> = snapshot.iter().map(|record| record.revision).collect();
    let found = snapshot.iter().filter(|record| record.key.namespace() == "t");
    let found: Vec<String> = found.map(|record| format!("{}={}", record.key.path(), text(record))).collect();
    assert_eq!(found, expected);
    revisions.sort_unstable();
    let all = revisions.len();
    revisions.dedup();
    assert_eq!(revisions.len(), all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sealed_values_are_opened_and_sealed_again_for_the_target() {
    let Some(etcd) = Etcd::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let process = etcd.try_open_sealing(seal(&["a"]), &|_| ()).await.unwrap();
    fill(&*process.store).await;
    let (file, expected) = (file_in(&folder), all_of(&*process.store).await);
    let blind = EtcdSource::open(&etcd.settings(), codec(Seal::none())).await.unwrap();
    let refused = back_up(&blind, &backup_of(&file)).await.unwrap_err();
    assert!(refused.to_string().contains("need --encryption-provider-config"), "{refused}");
    let source = EtcdSource::open(&etcd.settings(), codec(seal(&["a"]))).await.unwrap();
    let summary = back_up(&source, &backup_of(&file)).await.unwrap();
    let to = Sqlite::new();
    let target =
        portico_store::SqliteTarget::open(&to.path(), &summary.header.store_id, false).await.unwrap();
    restore_from(&file, Box::new(target), restore_options(BUMP)).await.unwrap();
    let restored = crate::sealed::open(&to, seal(&["a"])).await;
    assert_eq!(all_of(&restored).await, expected);
    assert!(restored.stale_seals(&config_maps()).await.unwrap().stale.is_empty());
    // Restores into etcd again, with another key.
    let Some(other) = Etcd::new() else { return };
    let blind = Box::new(target_of(&other, Seal::none()).await);
    let refused = restore_from(&file, blind, restore_options(BUMP)).await.unwrap_err();
    assert!(matches!(&refused, CopyError::Unopened { .. }), "{refused}");
    let target = EtcdTarget::open(&other.settings(), codec(seal(&["b", "a"])), 0, true).await.unwrap();
    restore_from(&file, Box::new(target), restore_options(BUMP)).await.unwrap();
    let process = other.try_open_sealing(seal(&["b"]), &|_| ()).await.unwrap();
    assert_eq!(all_of(&*process.store).await.len(), expected.len());
    assert!(process.store.condition().unreadable.is_empty());
}

async fn target_of(etcd: &Etcd, seal: std::sync::Arc<Seal>) -> EtcdTarget {
    EtcdTarget::open(&etcd.settings(), codec(seal), 0, false).await.unwrap()
}
