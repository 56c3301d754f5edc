//! Tests of renewing the seals of archived states, in SQLite and PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_store::{
    ArchiveAt, CipherKey, CipherKind, Metrics, PastQuery, Provider, ResealedPast, Seal, SealMetrics,
    SealRules, SqliteStore, Store, Txn,
};
use portico_tests::until;

use crate::archive::{archiving, past, shown, write};
use crate::harness::*;
use crate::postgres::Postgres;

/// Returns rules with keys of these names, the first of which seals; `identity` stands for plain values.
fn rules(names: &[&str]) -> SealRules {
    let provider = |name: &&str| match *name {
        "identity" => Arc::new(Provider::Identity),
        name => {
            let key = CipherKey::aes_gcm(&[name.as_bytes()[0]; 32]).unwrap();
            Arc::new(Provider::Keys(CipherKind::AesGcm, vec![(name.to_owned(), key)]))
        }
    };
    let mut rules = SealRules::default();
    rules.add("configmaps", &names.iter().map(provider).collect::<Vec<_>>()).unwrap();
    rules
}

/// Runs all steps. Returns the sum of their results.
async fn reseal(store: &dyn Store) -> ResealedPast {
    let (revision, mut sum) = (store.revision(), ResealedPast::default());
    let mut behind = Some(ArchiveAt::default());
    while let Some(at) = behind {
        let step = store.reseal_past(revision, at).await.unwrap();
        sum.states += step.states;
        sum.resealed += step.resealed;
        sum.unreadable += step.unreadable;
        behind = step.next;
    }
    sum
}

fn found(states: u64, resealed: u64, unreadable: u64) -> ResealedPast {
    ResealedPast { states, resealed, unreadable, next: None }
}

/// Rotates the keys: objects first, then past states.
async fn past_states_open_with_the_new_key_alone_and_are_what_they_were(store: &dyn Store, seal: &Seal) {
    write(store).await;
    let archive = async || store.copy_source().archive(i64::MAX, ArchiveAt::END).await.unwrap();
    until("nothing is archived", async || !archive().await.kept.unwrap().is_empty()).await;
    let before = shown(&past(store, "a/1").await);
    assert_eq!(before, ["Added@6=5", "Deleted@5=gone", "Modified@4=3", "Added@2=1"]);
    // Some of it is in the archive then, the rest in the log.
    store.compact(4).await.unwrap();
    for (names, others) in [(["a", "identity"], ["identity", "a"]), (["b", "a"], ["a", "b"])] {
        seal.replace(rules(&names));
        for (key, revision) in store.sealed_otherwise(&config_maps()).await.unwrap().stale {
            let value = store.find(&key).await.unwrap().object.unwrap().unwrap().value.clone();
            commit(store, Txn::update(key, revision, value)).await.unwrap();
        }
        store.compact(store.revision()).await.unwrap();
        let done = reseal(store).await;
        assert!(done.states >= 5 && done.resealed == done.states && done.unreadable == 0, "{done:?}");
        assert_eq!(reseal(store).await, found(done.states, 0, 0), "{names:?}");
        seal.replace(rules(&names[..1]));
        assert!(shown(&past(store, "a/1").await).ends_with(&before), "{names:?}");
        seal.replace(rules(&others[..1]));
        assert_eq!(reseal(store).await, found(done.states, 0, done.states), "{others:?} opens nothing");
    }
    seal.replace(SealRules::default());
    let without_rule = reseal(store).await;
    assert!(without_rule.states > 5 && without_rule.unreadable == without_rule.states, "{without_rule:?}");
    seal.replace(rules(&["identity", "b"]));
    let plain = reseal(store).await;
    assert!(plain.resealed > 5 && plain.resealed == plain.states, "{plain:?}");
    seal.replace(SealRules::default());
    // The current states are sealed.
    let older = PastQuery { key: key("a/1"), before: Some(store.revision() - 1), limit: 100 };
    assert!(shown(&store.past(older).await.unwrap().states).ends_with(&before), "they are plain again");
}

fn sealing() -> Arc<Seal> {
    Seal::new(rules(&["identity"]), SealMetrics::new(&Registry::new(), "server"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_sqlite_past_states_open_with_the_new_key_alone_and_are_what_they_were() {
    let (backend, seal) = (Sqlite::new(), sealing());
    let mut settings = settings_at(backend.path());
    archiving(&mut settings);
    let (metrics, indexer) = (Metrics::new(&Registry::new()), Arc::new(WithNodeName));
    let store = SqliteStore::open_sealed(settings, indexer, seal.clone(), metrics, &TaskSet::new()).await;
    let store = store.unwrap();
    bounded(past_states_open_with_the_new_key_alone_and_are_what_they_were(&store, &seal)).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_postgresql_past_states_open_with_the_new_key_alone_and_are_what_they_were() {
    let (Some(backend), seal) = (Postgres::direct(), sealing()) else { return };
    let mut settings = settings_at("");
    archiving(&mut settings);
    let process = backend.try_open(backend.settings(), settings, seal.clone()).await.unwrap();
    bounded(past_states_open_with_the_new_key_alone_and_are_what_they_were(&*process.store, &seal)).await;
    process.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_postgresql_what_is_swept_later_is_sealed_before_it_is_archived() {
    let (Some(backend), seal) = (Postgres::direct(), sealing()) else { return };
    let (mut postgres, mut settings) = (backend.settings(), settings_at(""));
    archiving(&mut settings);
    // Only resealing records the archived resources, and the sweep runs after it.
    settings.compaction_interval = Duration::from_secs(3_600);
    postgres.sweep_delay = Duration::from_secs(2);
    let store = backend.try_open(postgres, settings, seal.clone()).await.unwrap().store;
    bounded(async {
        write(&*store).await;
        let before = shown(&past(&*store, "a/1").await);
        seal.replace(rules(&["a", "identity"]));
        let revision = store.revision();
        store.compact(revision).await.unwrap();
        let done = reseal(&*store).await;
        assert_eq!(done, found(done.states, done.states, 0));
        until("it is swept", async || backend.psql("SELECT revision FROM swept") == revision.to_string())
            .await;
        let plain = "SELECT count(*) FROM archive WHERE get_byte(value, 0) <> 2";
        assert_eq!(backend.psql(plain), "0");
        assert_eq!(shown(&past(&*store, "a/1").await), before);
    })
    .await;
    store.close().await;
}
