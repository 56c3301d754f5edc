//! Tests of values from another process that this one has no key for: other objects are served, and the values become readable
//! with their key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use portico_kit::metrics::Registry;
use portico_store::{
    Change, CipherKey, CipherKind, Envelope, EnvelopeTimes, KeyService, KeyServiceError, KeyStatus,
    Precondition, Provider, Scope, Seal, SealMetrics, SealRules, StoreError, Txn, TxnError, WatchError,
    WrappedKey,
};
use zeroize::Zeroizing;

use crate::harness::*;
use crate::postgres::Postgres;

pub fn rules(names: &[&str]) -> SealRules {
    let provider = |name: &&str| {
        let key = CipherKey::aes_gcm(&[name.as_bytes()[0]; 32]).unwrap();
        Arc::new(Provider::Keys(CipherKind::AesGcm, vec![((*name).to_owned(), key)]))
    };
    let providers: Vec<_> = names.iter().map(provider).collect();
    let mut rules = SealRules::default();
    rules.add("configmaps", &providers).unwrap();
    rules
}

pub fn seal(names: &[&str]) -> Arc<Seal> {
    Seal::new(rules(names), SealMetrics::new(&Registry::new(), "server"))
}

/// Runs a check directly and behind a pooler.
async fn for_each_connection_mode(check: impl AsyncFn(&Postgres<'_>)) {
    for database in [Postgres::direct(), Postgres::pooled().await].into_iter().flatten() {
        check(&database).await;
    }
}

async fn objects_sealed_by_other_processes_become_readable_with_their_key() {
    for_each_connection_mode(test_recovery_with_the_key).await;
}

async fn test_recovery_with_the_key(database: &Postgres<'_>) {
    let open = async |seal| database.try_open(database.settings(), settings_at(""), seal).await.unwrap();
    let (ahead, follower_seal) = (open(seal(&["a", "b"])).await, seal(&["b"]));
    let behind = open(follower_seal.clone()).await;
    let (writer, store) = (&*ahead.store, &*behind.store);
    // Both processes know an object from before the keys differ.
    put(store, &key("x/old"), "0").await;
    put(store, &key("x/gone"), "0").await;
    put(store, &key("x/rest"), "0").await;
    let initial_revision = store.snapshot(&config_maps()).await.unwrap().revision();
    let mut watch = store.watch(Scope::all(&config_maps()), initial_revision).unwrap();
    put(writer, &key("x/old"), "1").await;
    put(writer, &key("x/new"), "1").await;
    put(writer, &key("x/new"), "2").await;
    delete(writer, &key("x/gone")).await;
    let ended = watch.next().await;
    assert!(matches!(ended, Err(WatchError::Store(StoreError::Corrupt { .. }))), "{ended:?}");
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    let names: Vec<_> = snapshot.iter().map(|record| record.key.path()).collect();
    assert_eq!(names, ["x/rest"]);
    let unreadable = snapshot.unreadable("x/new").unwrap();
    assert!(unreadable.is_sealed() && unreadable.uid() == "uid-new");
    let named: Vec<_> = store.condition().unreadable.iter().map(|object| object.key().clone()).collect();
    assert_eq!(named, [key("x/new"), key("x/old")]);
    assert_eq!(behind.metric("portico_store_unreadable_objects"), "2");
    // The object exists and cannot be overwritten; other objects can be written and watched.
    let over = Txn::single(key("x/new"), Precondition::Any, Change::Put(value(&key("x/new"), "3")));
    assert!(matches!(commit(store, over.clone()).await, Err(TxnError::Unreadable { .. })));
    let mut watch = store.watch(Scope::all(&config_maps()), snapshot.revision()).unwrap();
    let rest = put(store, &key("x/rest"), "1").await;
    assert_eq!(event_lines(&take(&mut watch, 1).await), [format!("Modified x/rest@{rest}")]);
    // With the key the object is readable, and its watchers list again.
    follower_seal.replace(rules(&["b", "a"]));
    let ended = tokio::time::timeout(WAIT_LIMIT, watch.next()).await.unwrap();
    assert!(matches!(ended, Err(WatchError::Compacted { .. })), "{ended:?}");
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    let expected = writer.snapshot(&config_maps()).await.unwrap();
    assert_eq!(lines(snapshot.iter()), lines(expected.iter()));
    assert!(store.condition().unreadable.is_empty());
    assert_eq!(behind.metric("portico_store_unreadable_objects"), "0");
    commit(store, over).await.unwrap();
    assert_eq!(behind.tasks.failure().map(|failure| failure.to_string()), None);
}

async fn deletions_are_visible_without_a_key() {
    for_each_connection_mode(test_deletion_without_a_key).await;
}

async fn test_deletion_without_a_key(database: &Postgres<'_>) {
    let open = async |seal| database.try_open(database.settings(), settings_at(""), seal).await.unwrap();
    let (ahead, behind) = (open(seal(&["a", "b"])).await, open(seal(&["b"])).await);
    put(&*behind.store, &key("x/1"), "0").await;
    let initial_revision = behind.store.snapshot(&config_maps()).await.unwrap().revision();
    let mut watch = behind.store.watch(Scope::all(&config_maps()), initial_revision).unwrap();
    let deleted = delete(&*ahead.store, &key("x/1")).await;
    let events = take(&mut watch, 1).await;
    assert_eq!(event_lines(&events), [format!("Deleted x/1@{deleted}")]);
    assert_eq!(text(&events[0].record), "0", "the last known state");
    let deadline = Instant::now() + WAIT_LIMIT;
    while !behind.store.snapshot(&config_maps()).await.unwrap().is_empty() {
        assert!(Instant::now() < deadline);
    }
}

/// Key service that wraps by inverting bytes, and whose unwrapping can be unavailable.
#[derive(Default)]
struct Service {
    is_unavailable: AtomicBool,
}

impl KeyService for Service {
    fn status(&self) -> BoxFuture<'_, Result<KeyStatus, KeyServiceError>> {
        let status = KeyStatus { version: "v2".into(), healthz: "ok".into(), key_id: "one".into() };
        Box::pin(std::future::ready(Ok(status)))
    }

    fn encrypt<'a>(
        &'a self,
        _uid: &'a str,
        plaintext: &'a [u8],
    ) -> BoxFuture<'a, Result<WrappedKey, KeyServiceError>> {
        let ciphertext = plaintext.iter().map(|byte| !byte).collect();
        let wrapped = WrappedKey { ciphertext, key_id: "one".into(), ..WrappedKey::default() };
        Box::pin(std::future::ready(Ok(wrapped)))
    }

    fn decrypt<'a>(
        &'a self,
        _uid: &'a str,
        wrapped: WrappedKey,
    ) -> BoxFuture<'a, Result<Zeroizing<Vec<u8>>, KeyServiceError>> {
        let unavailable =
            KeyServiceError { text: "unavailable".into(), code: "Unavailable", is_unreachable: true };
        let unwrapped = match self.is_unavailable.load(Ordering::SeqCst) {
            true => Err(unavailable),
            false => Ok(wrapped.ciphertext.iter().map(|byte| !byte).collect::<Vec<u8>>().into()),
        };
        Box::pin(std::future::ready(unwrapped))
    }
}

/// Returns rules that seal config maps with this service, in a new process.
async fn sealed_by(service: &Arc<Service>) -> Arc<Seal> {
    let metrics = || SealMetrics::new(&Registry::new(), "server");
    let times = EnvelopeTimes { refusal_ttl: Duration::ZERO, ..EnvelopeTimes::default() };
    let envelope = Envelope::new("kms", service.clone(), times, metrics());
    envelope.probe().await.unwrap();
    let mut rules = SealRules::default();
    rules.add("configmaps", &[Arc::new(Provider::Kms(envelope))]).unwrap();
    Seal::new(rules, metrics())
}

#[tokio::test]
async fn an_unavailable_key_service_only_affects_values_that_need_it() {
    let Some(database) = Postgres::direct() else { return };
    let open = async |seal| database.try_open(database.settings(), settings_at(""), seal).await.unwrap();
    let service = Arc::new(Service::default());
    let (ahead, behind) = (open(sealed_by(&service).await).await, open(sealed_by(&service).await).await);
    let (writer, store) = (&*ahead.store, &*behind.store);
    put(store, &key("x/own"), "0").await;
    let initial_revision = store.snapshot(&config_maps()).await.unwrap().revision();
    service.is_unavailable.store(true, Ordering::SeqCst);
    put(writer, &key("x/others"), "0").await;
    // The process follows, writes, and serves objects that it can open.
    put(store, &key("x/own"), "1").await;
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    let names: Vec<_> = snapshot.iter().map(|record| record.key.path()).collect();
    assert_eq!(names, ["x/own"]);
    assert!(snapshot.unreadable("x/others").unwrap().is_sealed());
    let mut watch = store.watch(Scope::all(&config_maps()), snapshot.revision()).unwrap();
    let mut before = store.watch(Scope::all(&config_maps()), initial_revision).unwrap();
    let revision = put(store, &key("x/own"), "2").await;
    assert_eq!(event_lines(&take(&mut watch, 1).await), [format!("Modified x/own@{revision}")]);
    assert!(before.next().await.is_err(), "a watch must not skip an object that cannot be opened");
    // When the service is available again, the object is readable, and its watchers list again.
    service.is_unavailable.store(false, Ordering::SeqCst);
    let ended = tokio::time::timeout(WAIT_LIMIT, watch.next()).await.unwrap();
    assert!(matches!(ended, Err(WatchError::Compacted { .. })), "{ended:?}");
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    assert_eq!(lines(snapshot.iter()), lines(writer.snapshot(&config_maps()).await.unwrap().iter()));
    assert_eq!(behind.tasks.failure().map(|failure| failure.to_string()), None);
}

crate::cached_and_uncached! {
    objects_sealed_by_other_processes_become_readable_with_their_key,
    deletions_are_visible_without_a_key,
}
