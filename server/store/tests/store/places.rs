//! Tests of the location and the owner of database files: links, owners, files after failures.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::Path;

use portico_store::{Doctor, MetadataIndexer, OpenError, Store, restore};

use crate::harness::*;

/// A user other than root.
const OTHER_USER: u32 = 12_345;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

async fn lines_at(path: &Path) -> Vec<String> {
    let store = open_sqlite(path.to_owned(), &|_| ()).await.unwrap();
    let found = lines(store.snapshot(&config_maps()).await.unwrap().iter());
    store.close().await;
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_moved_while_served_does_not_affect_another_one_at_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let (data, moved) = (folder.path().join("data"), folder.path().join("moved"));
    let moved_store = open_sqlite(data.join("portico.db"), &|_| ()).await.unwrap();
    put(&moved_store, &key("a/1"), "moved").await;
    fs::rename(&data, &moved).unwrap();
    let other = open_sqlite(data.join("portico.db"), &|_| ()).await.unwrap();
    put(&other, &key("a/1"), "other").await;
    let before = names(&data);
    let mark = fs::read_to_string(data.join("portico.db.mark")).unwrap();
    put(&moved_store, &key("a/2"), "moved").await;
    moved_store.close().await;
    drop(moved_store);
    assert_eq!(names(&data), before);
    assert_eq!(fs::read_to_string(data.join("portico.db.mark")).unwrap(), mark);
    other.close().await;
    drop(other);
    assert_eq!(lines_at(&data.join("portico.db")).await, ["a/1@2=other"]);
    assert_eq!(lines_at(&moved.join("portico.db")).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_opens_the_database_that_it_refers_to() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["real", "one", "two"] {
        fs::create_dir(at(name)).unwrap();
    }
    let (real, one, two) = (at("real/portico.db"), at("one/portico.db"), at("two/portico.db"));
    // The first link refers to the future path of the database.
    symlink("../real/portico.db", &one).unwrap();
    symlink(&one, &two).unwrap();
    let store = open_sqlite(one.clone(), &|_| ()).await.unwrap();
    put(&store, &key("a/1"), "x").await;
    let second = open_sqlite(two.clone(), &|_| ()).await.err().unwrap();
    assert!(matches!(second, OpenError::InUse { .. }), "{second}");
    // While it is served, reads through a link find its log as well.
    copy_database(&real, &at("backup")).await;
    assert_eq!(Doctor::new(&two, &MetadataIndexer).examine().await.unwrap().objects, 1);
    // The files of a killed process, with a link to the database: its log is found.
    fs::create_dir(at("killed")).unwrap();
    for suffix in ["", "-wal", ".mark"] {
        let name = format!("portico.db{suffix}");
        fs::copy(at("real").join(&name), at("killed").join(&name)).unwrap();
    }
    symlink("killed/portico.db", at("portico.db")).unwrap();
    let after_kill = open_sqlite(at("portico.db"), &|_| ()).await.unwrap();
    assert_eq!((after_kill.identity().epoch, after_kill.revision()), (1, 2));
    after_kill.close().await;
    put(&store, &key("a/2"), "x").await;
    store.close().await;
    drop(store);
    for link in [&one, &two] {
        assert_eq!(names(link.parent().unwrap()), ["portico.db"]);
    }
    // A restore replaces the file, not the link.
    let restored = restore(&at("backup"), &two, 1).await.unwrap();
    assert_eq!(restored.replaced.unwrap(), at("one/../real/portico.db.epoch-1"));
    assert!(
        fs::symlink_metadata(&one).unwrap().is_symlink() && fs::symlink_metadata(&two).unwrap().is_symlink()
    );
    assert_eq!(lines_at(&real).await, ["a/1@2=x"]);
    assert_eq!(lines_at(&one).await, ["a/1@2=x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_restore_leaves_no_files() {
    let backend = Sqlite::new();
    let store = backend.open().await;
    for n in 0..50 {
        put(&*store, &key(&format!("a/{n}")), &"x".repeat(5_000)).await;
    }
    let (database, folder) = (backend.path(), backend.path().parent().unwrap().to_owned());
    let (file, damaged) = (folder.join("backup"), folder.join("damaged"));
    copy_database(&database, &file).await;
    store.close().await;
    drop(store);
    let mut bytes = fs::read(&file).unwrap();
    // Overwrites the root pages of the first tables; damage in a value is only detected when the value is read.
    bytes[4096..4 * 4096].fill(0x5a);
    fs::write(&damaged, bytes).unwrap();
    fs::write(folder.join("text"), "text instead of a database; ".repeat(30)).unwrap();
    // The intact copy has no revisions left for a new epoch: it fails last.
    for (source, bump) in [("damaged", 1), ("text", 1), ("backup", i64::MAX - 100)] {
        let before = names(&folder);
        let refused = restore(&folder.join(source), &database, bump).await;
        assert!(refused.is_err(), "{source}: {refused:?}");
        assert_eq!(names(&folder), before, "{source}");
    }
    assert_eq!(lines_at(&database).await.len(), 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_restored_or_repaired_by_root_keep_their_owner() {
    let backend = Sqlite::new();
    let store = backend.open().await;
    put(&*store, &key("a/1"), "x").await;
    let (database, folder) = (backend.path(), backend.path().parent().unwrap().to_owned());
    let file = folder.with_file_name("backup");
    copy_database(&database, &file).await;
    store.close().await;
    drop(store);
    if fs::metadata(&database).unwrap().uid() != 0 {
        use std::io::Write as _;
        std::io::stdout().lock().write_all(b"skipped: only root can create files of other users\n").unwrap();
        return;
    }
    let empty = folder.with_file_name("empty");
    fs::create_dir(&empty).unwrap();
    for path in [&folder, &empty, &database] {
        chown(path, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    }
    for name in ["portico.db.lock", "portico.db.mark", "portico.db.reserve"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    // A restore that replaces a database, one without an existing database, and a removal of objects.
    restore(&file, &database, 1).await.unwrap();
    restore(&file, &empty.join("portico.db"), 1).await.unwrap();
    Doctor::new(&database, &MetadataIndexer).remove_unreadable().await.unwrap();
    for folder in [&folder, &empty] {
        for name in names(folder) {
            let owner = fs::metadata(folder.join(&name)).unwrap();
            assert_eq!((owner.uid(), owner.gid()), (OTHER_USER, OTHER_USER), "{name}");
        }
        assert!(names(folder).contains(&"portico.db.mark".to_owned()));
    }
}
