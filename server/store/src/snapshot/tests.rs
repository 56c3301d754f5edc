//! Compares the chunks with a `BTreeMap`.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::index::Indexed;
use crate::record::Value;

fn record(namespace: &str, name: &str, revision: i64) -> Arc<Record> {
    let key = Key::new(&Resource::new("", "things"), namespace, name);
    Arc::new(Record { key, revision, value: Value::new(*b"{}", Indexed::default()) })
}

fn snapshot(objects: Objects) -> Snapshot {
    Snapshot::new(Resource::new("", "things"), Arc::new(objects), 1, 7)
}

proptest! {
    #[test]
    fn objects_behave_as_a_sorted_map(steps in prop::collection::vec((0..4u8, 0..600u16, prop::bool::weighted(0.7)), 0..2_000)) {
        let mut objects = Objects::default();
        let mut model: BTreeMap<String, i64> = BTreeMap::new();
        for (revision, (namespace, name, put)) in (0..).zip(steps) {
            let namespace = ["", "a", "a-b", "b"][namespace as usize];
            let record = record(namespace, &format!("{name:03}"), revision);
            let path = record.key.path().to_owned();
            let (before, expected) = if put {
                (objects.insert(record), model.insert(path, revision))
            } else {
                (objects.remove(&path), model.remove(&path))
            };
            prop_assert_eq!(before.map(|record| record.revision), expected);
        }
        let snapshot = snapshot(objects.clone());
        prop_assert!(objects.chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= CHUNK_MAX));
        let listed: Vec<&str> = snapshot.iter().map(|record| record.key.path()).collect();
        prop_assert_eq!(&listed, &model.keys().map(String::as_str).collect::<Vec<_>>());
        for (namespace, after) in [("a", None), ("a-b", None), ("a", Some("a/300")), ("b", Some("b/9"))] {
            let range = snapshot.range(Some(namespace), after);
            let expected: Vec<&String> = model.keys().filter(|path| {
                path.starts_with(&format!("{namespace}/")) && after.is_none_or(|after| path.as_str() > after)
            }).collect();
            prop_assert_eq!(range.len(), expected.len());
            prop_assert_eq!(range.map(|record| record.key.path()).collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn a_snapshot_does_not_see_later_changes() {
    let records: Vec<_> = (0..1_000).map(|n| record("a", &format!("{n:04}"), n)).collect();
    let mut objects = Objects::from_sorted(&records, Vec::new());
    let before = snapshot(objects.clone());
    objects.remove("a/0500");
    objects.insert(record("a", "0001", 2_000));
    assert_eq!((before.len(), objects.len), (1_000, 999));
    assert_eq!(before.get_path("a/0001").unwrap().revision, 1);
    assert_eq!(objects.get("a/0001").unwrap().revision, 2_000);
    assert_eq!((before.revision(), before.unchanged_since()), (7, 1));
}

#[test]
fn objects_that_a_selector_excludes_are_skipped_and_counted() {
    let labelled = |n: i64| {
        let labels = [("app".into(), (if n % 10 == 0 { "web" } else { "db" }).into())];
        let indexed = Indexed { labels: labels.into(), ..Indexed::default() };
        let key = Key::new(&Resource::new("", "things"), "a", &format!("{n:04}"));
        Arc::new(Record { key, revision: n, value: Value::new(*b"{}", indexed) })
    };
    let records: Vec<_> = (0..1_000).map(labelled).collect();
    let snapshot = snapshot(Objects::from_sorted(&records, Vec::new()));
    let required = Signature::default().with_label("app", "web");
    let mut range = snapshot.range(Some("a"), Some("a/0099"));
    assert_eq!(range.next_matching(required).unwrap().revision, 100);
    assert_eq!(range.len(), 899);
    let revisions: Vec<i64> = range.clone().matching(required).map(|record| record.revision).collect();
    assert_eq!(revisions, (110..1_000).step_by(10).collect::<Vec<_>>());
    assert!(range.matching(Signature::default().with_label("app", "none")).count() < 100);
}
