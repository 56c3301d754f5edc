//! Tests of the archive in SQLite and PostgreSQL.

use std::time::Duration;

use portico_machinery::GroupResource;
use portico_store::{
    Change, EventType, Expect, Key, ListAt, PastQuery, PastState, Scope, Settings, Store, StoreError, Txn,
};
use portico_tests::until;

use crate::harness::*;
use crate::postgres::Postgres;

pub fn archiving(settings: &mut Settings) {
    settings.archive.keep(GroupResource::new("", "configmaps"), Duration::from_secs(3_600));
    settings.compaction_interval = Duration::from_millis(50);
}

fn not_archiving(settings: &mut Settings) {
    settings.compaction_interval = Duration::from_millis(50);
}

pub fn at(revision: i64) -> ListAt {
    ListAt { scope: Scope::all(&config_maps()), revision, after: None, limit: None, counted: false }
}

pub async fn past(store: &dyn Store, path: &str) -> Vec<PastState> {
    store.past(PastQuery { key: key(path), before: None, limit: 100 }).await.unwrap().states
}

/// Returns `Change@revision=text` for each state.
pub fn shown(states: &[PastState]) -> Vec<String> {
    let line = |state: &PastState| {
        format!("{:?}@{}={}", state.change, state.revision(), text(state.state.as_ref().unwrap()))
    };
    states.iter().map(line).collect()
}

async fn is_readable(store: &dyn Store, revision: i64) -> bool {
    match store.list_past(at(revision)).await {
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
    let made = Txn::one(lease.clone(), Expect::Any, Change::Put(value(&lease, "x")));
    commit(store, made).await.unwrap();
}

async fn states_outlive_the_log(backend: &dyn Backend) {
    let store = backend.open_with(&archiving).await;
    write(&*store).await;
    let before = shown(&past(&*store, "a/1").await);
    assert_eq!(before, ["Added@6=5", "Deleted@5=gone", "Modified@4=3", "Added@2=1"]);
    assert!(past(&*store, "a/1").await.iter().all(|state| state.written.is_some()));
    store.compact(store.revision()).await.unwrap();
    until("the archive has no states", async || is_readable(&*store, 4).await).await;
    assert!(matches!(store.list_at(at(4)).await, Err(StoreError::Compacted { .. })));
    assert_eq!(shown(&past(&*store, "a/1").await), before);
    let expected: [&[&str]; 6] = [
        &["a/1@2=1"],
        &["a/1@2=1", "a/2@3=2"],
        &["a/1@4=3", "a/2@3=2"],
        &["a/2@3=2"],
        &["a/1@6=5", "a/2@3=2"],
        &["a/1@6=5", "a/2@3=2"],
    ];
    for (revision, expected) in (2..).zip(expected) {
        assert_eq!(lines(&store.list_past(at(revision)).await.unwrap().records), expected, "at {revision}");
    }
    let first = ListAt { limit: Some(1), ..at(4) };
    let page = store.list_past(first.clone()).await.unwrap();
    assert_eq!((lines(&page.records), page.remaining), (vec!["a/1@4=3".to_owned()], 1));
    let rest = ListAt { after: Some("a/1".to_owned()), limit: None, ..first };
    assert_eq!(lines(&store.list_past(rest).await.unwrap().records), ["a/2@3=2"]);
    let elsewhere = ListAt { scope: Scope::namespace(&config_maps(), "b"), ..at(4) };
    assert!(store.list_past(elsewhere).await.unwrap().records.is_empty());
    let paged = PastQuery { key: key("a/1"), before: Some(6), limit: 2 };
    let paged = store.past(paged).await.unwrap();
    assert_eq!((shown(&paged.states), paged.more), (before[1..3].to_vec(), true));
    let of_leases = ListAt { scope: Scope::all(&leases()), ..at(4) };
    assert!(matches!(store.list_past(of_leases).await, Err(StoreError::Compacted { .. })));
    store.close().await;
    drop(store);
    let store = backend.open_with(&archiving).await;
    assert_eq!(shown(&past(&*store, "a/1").await), before);
    assert_eq!(past(&*store, "a/1").await[0].change, EventType::Added);
    store.close().await;
}

async fn what_is_archived_no_longer_is_forgotten(backend: &dyn Backend) {
    let store = backend.open_with(&archiving).await;
    write(&*store).await;
    store.compact(store.revision()).await.unwrap();
    until("the archive has no states", async || is_readable(&*store, 4).await).await;
    store.close().await;
    drop(store);
    let store = backend.open_with(&not_archiving).await;
    let gone = async || past(&*store, "a/1").await.len() == 1 && !is_readable(&*store, 4).await;
    until("the archive keeps what it has no rule for", gone).await;
    store.close().await;
}

async fn the_oldest_states_go_first_beyond_the_limit(backend: &dyn Backend) {
    let limited = |settings: &mut Settings| {
        archiving(settings);
        settings.archive_max_bytes = 300_000;
    };
    let store = backend.open_with(&limited).await;
    // More states than one step deletes, of about 290 bytes each, so that two steps are needed.
    for n in 0..3_000 {
        put(&*store, &key("a/1"), &n.to_string()).await;
    }
    store.compact(store.revision()).await.unwrap();
    let query = || PastQuery { key: key("a/1"), before: None, limit: 10_000 };
    let shrunk = async || (2..1_500).contains(&store.past(query()).await.unwrap().states.len());
    until("the archive does not shrink", shrunk).await;
    let past = store.past(query()).await.unwrap();
    let oldest = past.states.last().unwrap().revision();
    assert_eq!(past.states.len() as i64, store.revision() - oldest + 1, "there is a gap");
    assert!(past.complete_from <= oldest && past.complete_from > 2, "{} {oldest}", past.complete_from);
    assert!(is_readable(&*store, past.complete_from).await && !is_readable(&*store, 2).await);
    store.close().await;
}

async fn a_time_leads_to_the_revision_of_its_second(backend: &dyn Backend) {
    let store = backend.open_with(&archiving).await;
    let first = put(&*store, &key("a/1"), "1").await;
    let written = past(&*store, "a/1").await[0].written.unwrap();
    let mut last = first;
    let next_second = async || {
        last = put(&*store, &key("a/1"), "2").await;
        past(&*store, "a/1").await[0].written.unwrap() >= written + 2
    };
    until("no second passes", next_second).await;
    let found = store.revision_at(written).await.unwrap();
    assert!((first..last).contains(&found), "{first} {found} {last}");
    assert_eq!(store.revision_at(written + 3_600).await.unwrap(), store.revision());
    store.close().await;
}

/// Runs without archive rules and without compaction, and opens the store again in between.
async fn each_state_has_the_second_of_its_own_write(backend: &dyn Backend) {
    let seldom = |settings: &mut Settings| settings.compaction_interval = Duration::from_secs(3_600);
    let store = backend.open_with(&seldom).await;
    let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
    let begun = now();
    put(&*store, &key("a/1"), "0").await;
    let first = put(&*store, &key("a/1"), "1").await;
    let done = now();
    assert_eq!(store.revision_at(done + 3_600).await.unwrap(), first);
    store.close().await;
    drop(store);
    until("no second passes", async || now() >= done + 2).await;
    let store = backend.open_with(&seldom).await;
    put(&*store, &key("a/1"), "2").await;
    let [second, created, _] = &past(&*store, "a/1").await[..] else { panic!("three states") };
    // The clock of the database differs, and is read with fractions of a second.
    assert!((begun - 1..=done + 1).contains(&created.written.unwrap()), "{created:?}, {begun} to {done}");
    assert!(second.written.unwrap() > done, "{second:?}");
    assert_eq!(store.revision_at(created.written.unwrap()).await.unwrap(), first);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_no_rule_keeps_what_the_rule_of_another_is_for() {
    let Some(database) = Postgres::direct() else { return };
    bounded(async {
        let mut at_once = database.settings();
        at_once.sweep_delay = Duration::ZERO;
        let without_rule = database.process_with(at_once).await.store;
        let with_rule = database.process(&archiving).await.store;
        // A resource is known once it has an object.
        put(&*with_rule, &key("a/0"), "0").await;
        until("it is noted", async || database.psql("SELECT count(*) FROM archived") != "0").await;
        write(&*without_rule).await;
        let now = without_rule.revision();
        without_rule.compact(now).await.unwrap();
        until("it is swept", async || database.psql("SELECT revision FROM swept") == now.to_string()).await;
        let states = shown(&past(&*with_rule, "a/1").await);
        assert_eq!(states, ["Added@7=5", "Deleted@6=gone", "Modified@5=3", "Added@3=1"]);
        with_rule.close().await;
        without_rule.close().await;
    })
    .await;
}

macro_rules! archives {
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

archives! {
    states_outlive_the_log,
    what_is_archived_no_longer_is_forgotten,
    the_oldest_states_go_first_beyond_the_limit,
    a_time_leads_to_the_revision_of_its_second,
    each_state_has_the_second_of_its_own_write,
}
