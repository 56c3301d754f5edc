//! Tests of snapshots, deltas, resumption, and readers that fall behind.

use portico_machinery::route::Route;

use super::*;
use futures::FutureExt;

fn route(name: &str, revision: i64) -> (TableEntryKey, Option<TableEntry>) {
    let route = Route { name: name.into(), revision, ..Route::default() };
    (TableEntryKey::Route(name.into()), Some(TableEntry::Route(Arc::new(route))))
}

fn tombstone(name: &str) -> (TableEntryKey, Option<TableEntry>) {
    (TableEntryKey::Route(name.into()), None)
}

fn keys(update: &TableUpdate) -> (bool, i64, Vec<String>) {
    let name = |key: &TableEntryKey| match key {
        TableEntryKey::Route(name) | TableEntryKey::Bundle(name) => name.to_string(),
    };
    match update {
        TableUpdate::Snapshot(s) => (true, s.revision, s.entries.iter().map(|(k, _)| name(k)).collect()),
        TableUpdate::Delta(d) => {
            let changes = d.changes.iter();
            (
                false,
                d.revision,
                changes.map(|(k, e)| format!("{}{}", if e.is_some() { "" } else { "-" }, name(k))).collect(),
            )
        }
    }
}

#[test]
fn a_new_reader_gets_a_snapshot_and_then_changes() {
    let publisher = Publisher::new(100);
    publisher.publish(5, vec![route("a", 5), route("b", 5)]);
    let mut reader = publisher.subscribe(None);
    assert_eq!(keys(&reader.try_next().unwrap()), (true, 5, vec!["a".into(), "b".into()]));
    assert!(reader.next().now_or_never().is_none());
    publisher.publish(6, vec![route("a", 6)]);
    publisher.publish(7, vec![tombstone("b"), route("a", 7)]);
    assert_eq!(keys(&reader.next().now_or_never().unwrap()), (false, 7, vec!["-b".into(), "a".into()]));
    publisher.publish(9, Vec::new());
    assert_eq!(keys(&reader.next().now_or_never().unwrap()), (false, 9, Vec::new()), "progress");
    publisher.publish(9, Vec::new());
    assert!(reader.try_next().is_none());
}

#[test]
fn a_resumed_reader_also_gets_changes_that_were_delivered_late() {
    let publisher = Publisher::new(100);
    publisher.publish(5, vec![route("a", 5)]);
    publisher.mark_complete();
    publisher.publish(8, vec![route("b", 8)]);
    // An event of revision 7 that another stream delivers late.
    publisher.publish(7, vec![route("c", 7)]);
    let mut reader = publisher.subscribe(Some(8));
    assert_eq!(keys(&reader.try_next().unwrap()), (false, 8, vec!["b".into(), "c".into()]));
    let mut reader = publisher.subscribe(Some(6));
    assert_eq!(keys(&reader.try_next().unwrap()), (false, 8, vec!["b".into(), "c".into()]));
    for unknown in [3, 5, 9] {
        let mut reader = publisher.subscribe(Some(unknown));
        assert!(keys(&reader.try_next().unwrap()).0, "{unknown} gets a snapshot");
    }
}

#[test]
fn a_reader_that_is_too_far_behind_gets_a_snapshot_and_never_a_gap() {
    let publisher = Publisher::new(3);
    publisher.mark_complete();
    publisher.publish(1, vec![route("a", 1)]);
    let mut slow = publisher.subscribe(None);
    slow.try_next();
    for revision in 2..10 {
        publisher.publish(revision, vec![route("b", revision)]);
    }
    assert_eq!(keys(&slow.try_next().unwrap()), (true, 9, vec!["a".into(), "b".into()]));
    assert!(keys(&publisher.subscribe(Some(6)).try_next().unwrap()).0);
    assert!(keys(&publisher.subscribe(Some(7)).try_next().unwrap()).0, "the oldest label may be incomplete");
    assert!(!keys(&publisher.subscribe(Some(8)).try_next().unwrap()).0);
}

#[test]
fn a_version_of_an_earlier_process_gets_a_snapshot() {
    let publisher = Publisher::new(100);
    publisher.publish(0, vec![route("installed", 0)]);
    publisher.publish(40, vec![route("a", 12)]);
    // Routes deleted between revisions 30 and 40, before this process started, have no tombstones.
    assert!(keys(&publisher.subscribe(Some(30)).try_next().unwrap()).0);
    publisher.mark_complete();
    for earlier in [30, 40] {
        assert!(keys(&publisher.subscribe(Some(earlier)).try_next().unwrap()).0, "{earlier}");
    }
    publisher.publish(41, vec![route("a", 41)]);
    publisher.publish(42, vec![tombstone("a")]);
    assert_eq!(keys(&publisher.subscribe(Some(42)).try_next().unwrap()), (false, 42, vec!["-a".into()]));
}
