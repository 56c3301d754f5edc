//! Tests of renewing the seals of archived states, in SQLite and PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_store::{
    ArchiveCursor, CipherKey, CipherKind, Metrics, PastQuery, Provider, ResealProgress, Seal, SealMetrics,
    SealRules, SqliteStore, Store, Txn,
};
use portico_tests::wait_until;

use crate::archive::{enable_archive, past_states, state_lines, write};
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
async fn reseal(store: &dyn Store) -> ResealProgress {
    let (revision, mut sum) = (store.revision(), ResealProgress::default());
    let mut next = Some(ArchiveCursor::default());
    while let Some(cursor) = next {
        let step = store.reseal_past_states(revision, cursor).await.unwrap();
        sum.states += step.states;
        sum.resealed += step.resealed;
        sum.unreadable += step.unreadable;
        next = step.next;
    }
    sum
}

fn progress(states: u64, resealed: u64, unreadable: u64) -> ResealProgress {
    ResealProgress { states, resealed, unreadable, next: None }
}

/// Rotates the keys: objects first, then past states.
async fn test_resealing_of_past_states(store: &dyn Store, seal: &Seal) {
    write(store).await;
    let archive = async || store.copy_source().archive(i64::MAX, ArchiveCursor::END).await.unwrap();
    wait_until("nothing is archived", async || !archive().await.contents.unwrap().is_empty()).await;
    let before = state_lines(&past_states(store, "a/1").await);
    assert_eq!(before, ["Added@6=5", "Deleted@5=gone", "Modified@4=3", "Added@2=1"]);
    // Some past states are then in the archive, the others in the log.
    store.compact(4).await.unwrap();
    for (names, others) in [(["a", "identity"], ["identity", "a"]), (["b", "a"], ["a", "b"])] {
        seal.replace(rules(&names));
        for (key, revision) in store.stale_seals(&config_maps()).await.unwrap().stale {
            let value = store.find(&key).await.unwrap().object.unwrap().unwrap().value.clone();
            commit(store, Txn::update(key, revision, value)).await.unwrap();
        }
        store.compact(store.revision()).await.unwrap();
        let pass = reseal(store).await;
        assert!(pass.states >= 5 && pass.resealed == pass.states && pass.unreadable == 0, "{pass:?}");
        assert_eq!(reseal(store).await, progress(pass.states, 0, 0), "{names:?}");
        seal.replace(rules(&names[..1]));
        assert!(state_lines(&past_states(store, "a/1").await).ends_with(&before), "{names:?}");
        seal.replace(rules(&others[..1]));
        assert_eq!(
            reseal(store).await,
            progress(pass.states, 0, pass.states),
            "{others:?} must open no value"
        );
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
    assert!(
        state_lines(&store.past_states(older).await.unwrap().states).ends_with(&before),
        "past states are not plain"
    );
}

fn identity_seal() -> Arc<Seal> {
    Seal::new(rules(&["identity"]), SealMetrics::new(&Registry::new(), "server"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn past_states_in_sqlite_are_resealed_unchanged() {
    let (backend, seal) = (Sqlite::new(), identity_seal());
    let mut settings = settings_at(backend.path());
    enable_archive(&mut settings);
    let (metrics, indexer) = (Metrics::new(&Registry::new()), Arc::new(WithNodeName));
    let store = SqliteStore::open_sealed(settings, indexer, seal.clone(), metrics, &TaskSet::new()).await;
    let store = store.unwrap();
    bounded(test_resealing_of_past_states(&store, &seal)).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn past_states_in_postgresql_are_resealed_unchanged() {
    let (Some(backend), seal) = (Postgres::direct(), identity_seal()) else { return };
    let mut settings = settings_at("");
    enable_archive(&mut settings);
    let process = backend.try_open(backend.settings(), settings, seal.clone()).await.unwrap();
    bounded(test_resealing_of_past_states(&*process.store, &seal)).await;
    process.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_in_postgresql_are_sealed_before_a_later_sweep_archives_them() {
    let (Some(backend), seal) = (Postgres::direct(), identity_seal()) else { return };
    let (mut postgres, mut settings) = (backend.settings(), settings_at(""));
    enable_archive(&mut settings);
    // Only resealing records the archived resources, and the sweep runs after it.
    settings.compaction_interval = Duration::from_secs(3_600);
    postgres.sweep_delay = Duration::from_secs(2);
    let store = backend.try_open(postgres, settings, seal.clone()).await.unwrap().store;
    bounded(async {
        write(&*store).await;
        let before = state_lines(&past_states(&*store, "a/1").await);
        seal.replace(rules(&["a", "identity"]));
        let revision = store.revision();
        store.compact(revision).await.unwrap();
        let result = reseal(&*store).await;
        assert_eq!(result, progress(result.states, result.states, 0));
        wait_until("the log is not swept", async || {
            backend.psql("SELECT revision FROM swept") == revision.to_string()
        })
        .await;
        let plain = "SELECT count(*) FROM archive WHERE get_byte(value, 0) <> 2";
        assert_eq!(backend.psql(plain), "0");
        assert_eq!(state_lines(&past_states(&*store, "a/1").await), before);
    })
    .await;
    store.close().await;
}
