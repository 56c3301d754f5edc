//! Tests of rows with damaged keys: other rows are served, and no row is assigned to another object.

use std::sync::Arc;

use portico_store::{
    Change, Doctor, Finding, Key, ListAt, MetadataIndexer, MissingStates, Precondition, Resource, Scope,
    Store, StoreError, Txn, WatchError,
};

use crate::harness::*;
use crate::unreadable::execute;

/// Damage of the key of `b/3`, the displayed remains, true if the namespace is still known, and the reason.
const DAMAGES: [(&str, &str, bool, &str); 6] = [
    ("name = CAST(x'33ff' AS TEXT)", r"b/3\xff", true, "the name is not UTF-8"),
    ("name = CAST(x'c3' AS TEXT)", r"b/\xc3", true, "the name is not UTF-8"),
    ("namespace = CAST(x'f52f' AS TEXT)", r"\xf5/3", false, "the namespace is not UTF-8"),
    ("namespace = CAST(x'ff2f' AS TEXT)", r"\xff/3", false, "the namespace is not UTF-8"),
    ("namespace = CAST(x'80' AS TEXT), name = ''", r"\x80/", false, "the namespace is not UTF-8"),
    ("namespace = 'b'", "b/3", false, "invalid namespace or name"),
];

async fn filled(backend: &Sqlite) {
    let store = backend.open().await;
    for path in ["a/1", "a/2", "b/3", "b/4", "c/5"] {
        let change = Change::Put(value_with_owners(&key(path), "x", &["owner"]));
        commit(&*store, Txn::single(key(path), Precondition::Absent, change)).await.unwrap();
    }
    put(&*store, &Key::new(&leases(), "a", "l"), "x").await;
    store.close().await;
}

async fn damaged(backend: &Sqlite, set: &str) -> Arc<dyn Store> {
    filled(backend).await;
    assert_eq!(execute(backend, &format!("UPDATE log SET {set} WHERE name = '3'")).await, 1);
    backend.open().await
}

async fn findings(backend: &Sqlite) -> Vec<String> {
    let examined = Doctor::new(backend.path(), &MetadataIndexer).examine().await.unwrap();
    examined.findings.iter().map(Finding::to_string).collect()
}

fn page(namespace: Option<&str>, revision: i64, after: Option<String>, limit: Option<usize>) -> ListAt {
    let scope = match namespace {
        Some(namespace) => Scope::namespace(&config_maps(), namespace),
        None => Scope::all(&config_maps()),
    };
    ListAt { scope, revision, after, limit, exact_count: true }
}

async fn an_object_without_a_key_is_reported_and_all_others_are_served() {
    for (set, shown, _, reason) in DAMAGES {
        let backend = Sqlite::new();
        let store = damaged(&backend, set).await;
        let snapshot = store.snapshot(&config_maps()).await.unwrap();
        let all = ["a/1@2=x", "a/2@3=x", "b/4@5=x", "c/5@6=x"];
        assert_eq!(lines(snapshot.iter()), all, "{set}");
        let condition = store.condition();
        let [object] = &condition.unreadable[..] else { panic!("{set}: {:?}", condition.unreadable) };
        assert_eq!((object.key().path(), object.has_key(), object.uid()), (shown, false, "uid-3"), "{set}");
        assert_eq!((object.reason(), object.revision()), (reason, 4), "{set}");
        let damaged = store.damaged_keys(&config_maps()).await.unwrap();
        assert_eq!(
            damaged.iter().map(|object| (object.uid(), object.revision())).collect::<Vec<_>>(),
            [("uid-3", 4)]
        );
        assert!(store.damaged_keys(&leases()).await.unwrap().is_empty());
        // Lookups do not find the remains of the key.
        assert!(snapshot.unreadable(shown).is_none() && snapshot.get_path(shown).is_none());
        assert_eq!(snapshot.unreadable_in(Some("b")).count(), usize::from(shown.starts_with("b/")), "{set}");
        assert_eq!(snapshot.unreadable_in(Some("c")).count(), 0, "{set}");

        // The index of owners still contains it; reads across resources do not fail.
        assert_eq!(store.dependents("owner").await.unwrap().len(), 5, "{set}");
        assert_eq!(store.owner_uids().await.unwrap(), ["owner"]);
        assert!(store.terminating_keys().await.unwrap().is_empty());
        assert_eq!(store.object_counts().await.unwrap()[0], (config_maps(), 5));
        assert_eq!(store.resources_in("c").await.unwrap(), [config_maps()]);

        // Its real key is free, and the damaged row does not affect writes and compaction.
        commit(&*store, Txn::create(key("b/3"), value(&key("b/3"), "new"))).await.unwrap();
        put(&*store, &key("b/4"), "y").await;
        store.compact(i64::MAX).await.unwrap();
        put(&*store, &key("b/3"), "newer").await;
        delete(&*store, &key("b/3")).await;
        assert_eq!(store.condition().unreadable.len(), 1, "{set}");
    }
}

async fn exact_reads_omit_and_report_objects_without_a_key() {
    for (set, shown, ..) in DAMAGES {
        let backend = Sqlite::new();
        let store = damaged(&backend, set).await;
        let revision = store.revision();
        // Later changes force the reads below to use the log.
        put(&*store, &key("c/9"), "x").await;
        for limit in [None, Some(1), Some(2), Some(3), Some(4)] {
            let (mut found, mut unreadable, mut after) = (Vec::new(), Vec::new(), None);
            for left in (0..10).rev() {
                assert!(left > 0, "{set}: too many pages");
                let read = store.list_at(page(None, revision, after, limit)).await.unwrap();
                found.extend(lines(&read.records));
                unreadable.extend(read.unreadable.iter().map(|object| object.key().path().to_owned()));
                after = read.records.last().map(|record| record.key.path().to_owned());
                if read.remaining == 0 {
                    break;
                }
            }
            assert_eq!(found, ["a/1@2=x", "a/2@3=x", "b/4@5=x", "c/5@6=x"], "{set}, {limit:?}");
            assert_eq!(unreadable, [shown], "{set}, {limit:?}");
        }
        let read = store.list_at(page(Some("c"), revision, None, None)).await.unwrap();
        assert_eq!((lines(&read.records), read.unreadable.len()), (vec!["c/5@6=x".to_owned()], 0), "{set}");
        let mut uncounted = page(None, revision, None, Some(1));
        uncounted.exact_count = false;
        assert_eq!(store.list_at(uncounted).await.unwrap().remaining, 1);
    }
}

async fn unreadable_past_states_end_only_the_watches_that_select_them() {
    let value = ("value = x'09'", "b/3", true, "");
    for (set, shown, in_namespace, _) in DAMAGES.into_iter().chain([value]) {
        let backend = Sqlite::new();
        let store = damaged(&backend, set).await;
        let ends = |scope: Scope| {
            let mut watch = store.watch(scope, 1).unwrap();
            async move {
                match watch.next().await {
                    Err(WatchError::Store(StoreError::Corrupt { key, .. })) => Some(key.path().to_owned()),
                    Err(error) => panic!("{error}"),
                    Ok(_) => None,
                }
            }
        };
        assert_eq!(ends(Scope::all(&config_maps())).await.as_deref(), Some(shown), "{set}");
        // If the namespace is damaged, the event may belong to any namespace.
        let in_other_namespace = ends(Scope::namespace(&config_maps(), "c")).await;
        assert_eq!(in_other_namespace.as_deref(), (!in_namespace).then_some(shown), "{set}");
        assert_eq!(ends(Scope::all(&leases())).await, None, "{set}");
    }
}

async fn the_doctor_reports_and_removes_objects_without_keys() {
    for (set, shown, _, reason) in DAMAGES {
        let backend = Sqlite::new();
        damaged(&backend, set).await.close().await;
        let doctor = Doctor::new(backend.path(), &MetadataIndexer);
        let finding = format!("unreadable: configmaps/{shown} at revision 4: {reason}");
        assert!(findings(&backend).await.contains(&finding), "{set}: {:?}", findings(&backend).await);
        let mut exported = 0;
        let end = doctor
            .export(|_| {
                exported += 1;
                Ok(())
            })
            .await
            .unwrap();
        assert_eq!((exported, end.unreadable), (5, 1));
        let removed = doctor.remove_unreadable().await.unwrap();
        assert_eq!(removed.iter().map(|o| o.revision()).collect::<Vec<_>>(), [4], "{set}");
        assert_eq!(findings(&backend).await, Vec::<String>::new(), "{set}");
        let store = backend.open().await;
        assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), 4);
        assert!(store.condition().unreadable.is_empty());
    }
}

async fn a_damaged_index_of_owners_and_damaged_uids_cause_no_failures() {
    let backend = Sqlite::new();
    filled(&backend).await;
    execute(&backend, "UPDATE owner SET name = CAST(x'ff' AS TEXT) WHERE name = '1'").await;
    execute(&backend, "UPDATE owner SET owner_uid = CAST(x'ff' AS TEXT) WHERE name = '2'").await;
    execute(&backend, "UPDATE log SET uid = CAST(x'ff' AS TEXT)").await;
    execute(&backend, "UPDATE log SET value = x'09' WHERE name = '5'").await;
    let store = backend.open().await;
    assert_eq!(store.dependents("owner").await.unwrap(), [key("b/3"), key("b/4"), key("c/5")]);
    assert_eq!(store.owner_uids().await.unwrap(), ["owner"]);
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    assert_eq!((snapshot.len(), snapshot.unreadable("c/5").unwrap().uid()), (4, ""));
    store.close().await;
    let found = findings(&backend).await;
    for finding in [
        "unreadable: configmaps/c/5 at revision 6: unknown value format 9",
        r"inconsistent: configmaps/a/\xff is indexed as a dependent of owner, which is not its owner",
        r"inconsistent: configmaps/a/2 is indexed as a dependent of \xff, which is not its owner",
        "inconsistent: configmaps/a/1 has the owner owner, which is missing from the index",
    ] {
        assert!(found.iter().any(|found| found == finding), "{finding}: {found:?}");
    }
}

async fn a_resource_without_a_name_does_not_affect_other_resources() {
    let backend = Sqlite::new();
    filled(&backend).await;
    let set = "UPDATE resource SET resource = CAST(x'6cff' AS TEXT) WHERE resource = 'leases'";
    assert_eq!(execute(&backend, set).await, 1);
    let store = backend.open().await;
    assert_eq!(store.condition().unreadable_resources, [r"l\xff.coordination.k8s.io"]);
    assert!(store.incomplete_reason(&leases()).is_some_and(|reason| reason.contains(r"l\xff")));
    assert_eq!(store.incomplete_reason(&config_maps()), None, "the resource has another group");
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), 5);
    assert_eq!(store.resources_in("a").await.unwrap(), [config_maps()]);
    assert!(store.terminating_keys().await.unwrap().is_empty());
    // A new resource does not get its ID.
    put(&*store, &Key::new(&leases(), "a", "new"), "x").await;
    assert_eq!(store.snapshot(&leases()).await.unwrap().len(), 1);
    let mut all = store.follow(Arc::new(|_| true), 1).unwrap();
    assert_eq!(take(&mut all, 6).await.last().unwrap().record.key.path(), "a/new");
    store.close().await;
    drop(store);
    let found = findings(&backend).await;
    let resource = r"unreadable resource: l\xff.coordination.k8s.io: the name is not UTF-8";
    let object =
        r"unreadable: l\xff.coordination.k8s.io/a/l at revision 7: the name of the resource is not UTF-8";
    assert_eq!(found, [resource, object]);
    Doctor::new(backend.path(), &MetadataIndexer).remove_unreadable().await.unwrap();
    assert_eq!(findings(&backend).await, Vec::<String>::new());
    let store = backend.open().await;
    assert!(store.condition().unreadable_resources.is_empty());
    assert_eq!(store.snapshot(&leases()).await.unwrap().len(), 1);
}

/// Changes the log without updating its index of keys.
async fn change_without_index(backend: &Sqlite, change: &str) {
    use sqlx::{Connection as _, Row as _};
    const INDEX: &str = "SELECT tbl_name, rootpage, sql FROM sqlite_schema WHERE name = 'log_key'";
    let mut connection = crate::unreadable::raw_connection(backend).await;
    let index = sqlx::query(INDEX).fetch_one(&mut connection).await.unwrap();
    let hide = "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'log_key'";
    sqlx::raw_sql(hide).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    execute(backend, change).await;
    let mut connection = crate::unreadable::raw_connection(backend).await;
    sqlx::query("PRAGMA writable_schema = ON").execute(&mut connection).await.unwrap();
    let show = sqlx::query("INSERT INTO sqlite_schema VALUES ('index', 'log_key', ?, ?, ?)");
    let show = show.bind(index.get::<String, _>(0)).bind(index.get::<i64, _>(1));
    show.bind(index.get::<String, _>(2)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// Writes five objects, changes the log without its index, and returns the resources that the store reports as incomplete.
async fn incomplete_after(change: Option<&str>) -> MissingStates {
    let backend = Sqlite::new();
    let store = backend.open().await;
    for n in 0..5 {
        put(&*store, &key(&format!("a/{n}")), "x").await;
    }
    store.close().await;
    drop(store);
    if let Some(change) = change {
        change_without_index(&backend, change).await;
    }
    let store = backend.open().await;
    put(&*store, &key("a/0"), "y").await;
    let compared = async || store.condition().missing_states != MissingStates::Unknown;
    portico_tests::wait_until("the file is not compared with the index", compared).await;
    let incomplete = store.condition().missing_states;
    let is_of = |resource: &Resource| match &incomplete {
        MissingStates::Resources(resources) => resources.contains(resource),
        incomplete => *incomplete == MissingStates::Any,
    };
    for resource in [config_maps(), leases()] {
        assert_eq!(store.incomplete_reason(&resource).is_some(), is_of(&resource), "{resource}");
    }
    store.close().await;
    incomplete
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_missing_in_the_log_or_its_index_are_detected() {
    const COPY: &str =
        "INSERT INTO log SELECT 1, resource, namespace, 'n', uid, 0, 0, value, NULL FROM log LIMIT 1";
    let of_config_maps = || MissingStates::Resources(vec![config_maps()]);
    for (change, expected) in [
        (Some("DELETE FROM log WHERE name = '3'"), of_config_maps()),
        (Some(COPY), of_config_maps()),
        (Some("UPDATE log SET resource = 99 WHERE name = '3'"), MissingStates::Any),
        (None, MissingStates::None),
    ] {
        assert_eq!(incomplete_after(change).await, expected, "{change:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_closes_and_opens_again_while_its_file_is_compared_in_several_steps() {
    const COPIES: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25000) \
        INSERT INTO log SELECT 100 + i, resource, namespace, 'n' || i, uid || i, 0, 0, value, NULL FROM log, n WHERE name = '0'";
    let backend = Sqlite::new();
    let store = backend.open().await;
    put(&*store, &key("a/0"), "x").await;
    store.close().await;
    drop(store);
    assert_eq!(execute(&backend, COPIES).await, 25_000);
    execute(&backend, "UPDATE meta SET revision = 30000").await;
    for _ in 0..20 {
        let store = backend.open().await;
        tokio::task::yield_now().await;
        store.close().await;
    }
    let store = backend.open().await;
    let compared = async || store.condition().missing_states != MissingStates::Unknown;
    portico_tests::wait_until("the file is not compared with the index", compared).await;
    assert_eq!(store.condition().missing_states, MissingStates::None);
}

/// Damages after which a row points to the row of another object, or hides it.
const CHAINS: [&str; 4] = [
    // The second state of a/1 appears to belong to another object, which exists or not.
    "UPDATE log SET name = '9' WHERE revision = 7",
    "UPDATE log SET name = '2' WHERE revision = 7",
    // It names the current state of another object as its previous one.
    "UPDATE log SET previous = 3 WHERE revision = 7",
    // The tombstone of b/3 hides b/4.
    "UPDATE log SET name = '4' WHERE revision = 8",
];

/// Writes objects `a/1` (states 2 and 7), `a/2` (3), `b/3` (4, deleted at 8), `b/4` (5), `c/5` (6), then applies the damage.
async fn damaged_chain(backend: &Sqlite, damage: &str) -> Arc<dyn Store> {
    let store = backend.open().await;
    for path in ["a/1", "a/2", "b/3", "b/4", "c/5", "a/1"] {
        put(&*store, &key(path), "x").await;
    }
    assert_eq!(delete(&*store, &key("b/3")).await, 8);
    store.close().await;
    drop(store);
    // Simulates an older version: a checksum would reveal such damage.
    execute(backend, "UPDATE log SET checksum = NULL").await;
    assert_eq!(execute(backend, damage).await, 1);
    backend.open().await
}

async fn compaction_removes_no_current_state_despite_damaged_references() {
    for damage in CHAINS {
        let backend = Sqlite::new();
        let store = damaged_chain(&backend, damage).await;
        let before = lines(store.snapshot(&config_maps()).await.unwrap().iter());
        store.compact(i64::MAX).await.unwrap();
        // Cache and database agree on every object, otherwise the writer would end.
        for path in ["a/1", "a/2", "b/3", "b/4", "c/5", "a/9"] {
            let check = Txn::single(key(path), Precondition::Any, Change::Check);
            let touch = Txn::single(key("z/0"), Precondition::Any, Change::Put(value(&key("z/0"), path)));
            let both = Txn { operations: [check.operations, touch.operations].concat() };
            commit(&*store, both).await.unwrap_or_else(|error| panic!("{damage}: {path}: {error}"));
        }
        delete(&*store, &key("z/0")).await;
        store.close().await;
        drop(store);
        let store = backend.open().await;
        assert_eq!(lines(store.snapshot(&config_maps()).await.unwrap().iter()), before, "{damage}");
    }
}

async fn a_new_epoch_contains_every_current_state_despite_damaged_references() {
    for damage in CHAINS {
        let backend = Sqlite::new();
        let store = damaged_chain(&backend, damage).await;
        let before = lines(store.snapshot(&config_maps()).await.unwrap().iter());
        store.close().await;
        drop(store);
        // An unreadable past state or tombstone causes a new epoch without history.
        assert_eq!(execute(&backend, "UPDATE log SET value = x'09' WHERE revision = 8").await, 1);
        Doctor::new(backend.path(), &MetadataIndexer).remove_unreadable().await.unwrap();
        let store = backend.open().await;
        assert_eq!(store.identity().epoch, 2, "{damage}");
        assert_eq!(lines(store.snapshot(&config_maps()).await.unwrap().iter()), before, "{damage}");
        put(&*store, &key("a/2"), "y").await;
        assert_eq!(findings(&backend).await, Vec::<String>::new(), "{damage}");
    }
}

async fn a_watch_never_reports_the_state_of_another_object_as_the_previous_one() {
    let backend = Sqlite::new();
    let store = damaged_chain(&backend, "UPDATE log SET previous = 3 WHERE revision = 7").await;
    let mut watch = store.watch(Scope::namespace(&config_maps(), "a"), 3).unwrap();
    let events = take(&mut watch, 1).await;
    assert_eq!(event_lines(&events), ["Modified a/1@7"]);
    assert!(events[0].has_unreadable_previous());
}

crate::cached_and_uncached! {
    an_object_without_a_key_is_reported_and_all_others_are_served,
    exact_reads_omit_and_report_objects_without_a_key,
    unreadable_past_states_end_only_the_watches_that_select_them,
    the_doctor_reports_and_removes_objects_without_keys,
    a_damaged_index_of_owners_and_damaged_uids_cause_no_failures,
    a_resource_without_a_name_does_not_affect_other_resources,
    compaction_removes_no_current_state_despite_damaged_references,
    a_new_epoch_contains_every_current_state_despite_damaged_references,
    a_watch_never_reports_the_state_of_another_object_as_the_previous_one,
}
