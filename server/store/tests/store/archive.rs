//! Tests of the archive in SQLite and PostgreSQL.

use std::time::Duration;

use portico_machinery::GroupResource;
use portico_store::{
    Change, EventType, Key, ListAt, PastQuery, PastState, Precondition, Scope, Settings, Store, StoreError,
    Txn,
};
use portico_tests::wait_until;

use crate::harness::*;
use crate::postgres::Postgres;

pub fn enable_archive(settings: &mut Settings) {
    settings.archive.set_retention(GroupResource::new("", "configmaps"), Duration::from_secs(3_600));
    settings.compaction_interval = Duration::from_millis(50);
}

fn disable_archive(settings: &mut Settings) {
    settings.compaction_interval = Duration::from_millis(50);
}

pub fn list_at_revision(revision: i64) -> ListAt {
    ListAt { scope: Scope::all(&config_maps()), revision, after: None, limit: None, exact_count: false }
}

pub async fn past_states(store: &dyn Store, path: &str) -> Vec<PastState> {
    store.past_states(PastQuery { key: key(path), before: None, limit: 100 }).await.unwrap().states
}

/// Returns `Change@revision=text` for each state.
pub fn state_lines(states: &[PastState]) -> Vec<String> {
    let line = |state: &PastState| {
        format!("{:?}@{}={}", state.change, state.revision(), text(state.state.as_ref().unwrap()))
    };
    states.iter().map(line).collect()
}

async fn is_readable(store: &dyn Store, revision: i64) -> bool {
    match store.list_past(list_at_revision(revision)).await {
        Ok(_) => true,
        Err(StoreError::Compacted { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Writes revisions 2 to 7: `a/1` is created, changed, deleted and created again; also `a/2` and a Lease.
pub async fn write(store: &dyn Store) {
    put(store, &key("a/1"), "1").await;
    put(store, &key("a/2"), "2").await;
    put(store, &key("a/1"), "3").await;
    delete(store, &key("a/1")).await;
    put(store, &key("a/1"), "5").await;
    let lease = Key::new(&leases(), "a", "1");
    let create = Txn::single(lease.clone(), Precondition::Any, Change::Put(value(&lease, "x")));
    commit(store, create).await.unwrap();
}

async fn states_outlive_the_log(backend: &dyn Backend) {
    let store = backend.open_with(&enable_archive).await;
    write(&*store).await;
    let before = state_lines(&past_states(&*store, "a/1").await);
    assert_eq!(before, ["Added@6=5", "Deleted@5=gone", "Modified@4=3", "Added@2=1"]);
    assert!(past_states(&*store, "a/1").await.iter().all(|state| state.written_at.is_some()));
    store.compact(store.revision()).await.unwrap();
    wait_until("the archive has no states", async || is_readable(&*store, 4).await).await;
    assert!(matches!(store.list_at(list_at_revision(4)).await, Err(StoreError::Compacted { .. })));
    assert_eq!(state_lines(&past_states(&*store, "a/1").await), before);
    let expected: [&[&str]; 6] = [
        &["a/1@2=1"],
        &["a/1@2=1", "a/2@3=2"],
        &["a/1@4=3", "a/2@3=2"],
        &["a/2@3=2"],
        &["a/1@6=5", "a/2@3=2"],
        &["a/1@6=5", "a/2@3=2"],
    ];
    for (revision, expected) in (2..).zip(expected) {
        assert_eq!(
            lines(&store.list_past(list_at_revision(revision)).await.unwrap().records),
            expected,
            "at {revision}"
        );
    }
    let first = ListAt { limit: Some(1), ..list_at_revision(4) };
    let page = store.list_past(first.clone()).await.unwrap();
    assert_eq!((lines(&page.records), page.remaining), (vec!["a/1@4=3".to_owned()], 1));
    let rest = ListAt { after: Some("a/1".to_owned()), limit: None, ..first };
    assert_eq!(lines(&store.list_past(rest).await.unwrap().records), ["a/2@3=2"]);
    let other_namespace = ListAt { scope: Scope::namespace(&config_maps(), "b"), ..list_at_revision(4) };
    assert!(store.list_past(other_namespace).await.unwrap().records.is_empty());
    let paged = PastQuery { key: key("a/1"), before: Some(6), limit: 2 };
    let paged = store.past_states(paged).await.unwrap();
    assert_eq!((state_lines(&paged.states), paged.has_more), (before[1..3].to_vec(), true));
    let of_leases = ListAt { scope: Scope::all(&leases()), ..list_at_revision(4) };
    assert!(matches!(store.list_past(of_leases).await, Err(StoreError::Compacted { .. })));
    store.close().await;
    drop(store);
    let store = backend.open_with(&enable_archive).await;
    assert_eq!(state_lines(&past_states(&*store, "a/1").await), before);
    assert_eq!(past_states(&*store, "a/1").await[0].change, EventType::Added);
    store.close().await;
}

async fn states_of_resources_that_are_no_longer_archived_are_deleted(backend: &dyn Backend) {
    let store = backend.open_with(&enable_archive).await;
    write(&*store).await;
    store.compact(store.revision()).await.unwrap();
    wait_until("the archive has no states", async || is_readable(&*store, 4).await).await;
    store.close().await;
    drop(store);
    let store = backend.open_with(&disable_archive).await;
    let is_deleted = async || past_states(&*store, "a/1").await.len() == 1 && !is_readable(&*store, 4).await;
    wait_until("the archive keeps states without a rule", is_deleted).await;
    store.close().await;
}

async fn the_oldest_states_beyond_the_size_limit_are_deleted(backend: &dyn Backend) {
    let limited = |settings: &mut Settings| {
        enable_archive(settings);
        settings.archive_max_bytes = 300_000;
    };
    let store = backend.open_with(&limited).await;
    // More states than one step deletes, of about 290 bytes each, so that two steps are needed.
    for n in 0..3_000 {
        put(&*store, &key("a/1"), &n.to_string()).await;
    }
    store.compact(store.revision()).await.unwrap();
    let query = || PastQuery { key: key("a/1"), before: None, limit: 10_000 };
    let shrunk = async || (2..1_500).contains(&store.past_states(query()).await.unwrap().states.len());
    wait_until("the archive does not shrink", shrunk).await;
    let past = store.past_states(query()).await.unwrap();
    let oldest = past.states.last().unwrap().revision();
    assert_eq!(past.states.len() as i64, store.revision() - oldest + 1, "a state is missing");
    assert!(past.complete_from <= oldest && past.complete_from > 2, "{} {oldest}", past.complete_from);
    assert!(is_readable(&*store, past.complete_from).await && !is_readable(&*store, 2).await);
    store.close().await;
}

async fn a_time_resolves_to_the_revision_of_its_second(backend: &dyn Backend) {
    let store = backend.open_with(&enable_archive).await;
    let first = put(&*store, &key("a/1"), "1").await;
    let written = past_states(&*store, "a/1").await[0].written_at.unwrap();
    let mut last = first;
    let next_second = async || {
        last = put(&*store, &key("a/1"), "2").await;
        past_states(&*store, "a/1").await[0].written_at.unwrap() >= written + 2
    };
    wait_until("the clock does not advance", next_second).await;
    let found = store.revision_at(written).await.unwrap();
    assert!((first..last).contains(&found), "{first} {found} {last}");
    assert_eq!(store.revision_at(written + 3_600).await.unwrap(), store.revision());
    store.close().await;
}

/// Runs without archive rules and without compaction, and opens the store again in between.
async fn each_state_has_the_time_of_its_write(backend: &dyn Backend) {
    let without_compaction =
        |settings: &mut Settings| settings.compaction_interval = Duration::from_secs(3_600);
    let store = backend.open_with(&without_compaction).await;
    let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
    let started = now();
    put(&*store, &key("a/1"), "0").await;
    let first = put(&*store, &key("a/1"), "1").await;
    let finished = now();
    assert_eq!(store.revision_at(finished + 3_600).await.unwrap(), first);
    store.close().await;
    drop(store);
    wait_until("the clock does not advance", async || now() >= finished + 2).await;
    let store = backend.open_with(&without_compaction).await;
    put(&*store, &key("a/1"), "2").await;
    let [second, created, _] = &past_states(&*store, "a/1").await[..] else { panic!("three states") };
    // The clock of the database differs, and is read with fractions of a second.
    assert!(
        (started - 1..=finished + 1).contains(&created.written_at.unwrap()),
        "{created:?}, {started} to {finished}"
    );
    assert!(second.written_at.unwrap() > finished, "{second:?}");
    assert_eq!(store.revision_at(created.written_at.unwrap()).await.unwrap(), first);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_without_archive_rules_applies_those_of_other_processes() {
    let Some(database) = Postgres::direct() else { return };
    bounded(async {
        let mut at_once = database.settings();
        at_once.sweep_delay = Duration::ZERO;
        let without_rule = database.process_with(at_once).await.store;
        let with_rule = database.process(&enable_archive).await.store;
        // A resource is recorded once it has an object.
        put(&*with_rule, &key("a/0"), "0").await;
        wait_until("the archived resource is not recorded", async || {
            database.psql("SELECT count(*) FROM archived") != "0"
        })
        .await;
        write(&*without_rule).await;
        let now = without_rule.revision();
        without_rule.compact(now).await.unwrap();
        wait_until("the log is not swept", async || {
            database.psql("SELECT revision FROM swept") == now.to_string()
        })
        .await;
        let states = state_lines(&past_states(&*with_rule, "a/1").await);
        assert_eq!(states, ["Added@7=5", "Deleted@6=gone", "Modified@5=3", "Added@3=1"]);
        with_rule.close().await;
        without_rule.close().await;
    })
    .await;
}

macro_rules! archive_tests {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    bounded(super::$name(&Sqlite::new())).await;
                }
            )*
        }
        mod postgres {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    if let Some(database) = Postgres::direct() {
                        bounded(super::$name(&database)).await;
                    }
                }
            )*
        }
    };
}

archive_tests! {
    states_outlive_the_log,
    states_of_resources_that_are_no_longer_archived_are_deleted,
    the_oldest_states_beyond_the_size_limit_are_deleted,
    a_time_resolves_to_the_revision_of_its_second,
    each_state_has_the_time_of_its_write,
}
