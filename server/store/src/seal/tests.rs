//! Tests of sealing and opening, with values sealed by upstream's code and an in-memory key service.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use portico_kit::metrics::Registry;
use zeroize::Zeroizing;

use super::*;

const PLAIN: &[u8] = br#"{"metadata":{}}"#;

fn key() -> Key {
    Key::new(&Resource::new("", "secrets"), "default", "x")
}

fn metrics() -> SealMetrics {
    SealMetrics::new(&Registry::new(), "server")
}

fn sequential_bytes(length: u8) -> Vec<u8> {
    (0..length).collect()
}

fn decode_hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn local(kind: CipherKind, keys: &[(&str, &[u8])]) -> Arc<Provider> {
    let make = match kind {
        CipherKind::AesCbc => CipherKey::aes_cbc,
        CipherKind::AesGcm => CipherKey::aes_gcm,
        CipherKind::Secretbox => CipherKey::secretbox,
    };
    let keys = keys.iter().map(|(name, key)| ((*name).to_owned(), make(key).unwrap()));
    Arc::new(Provider::Keys(kind, keys.collect()))
}

fn seal(rules: &[(&str, &[Arc<Provider>])]) -> Arc<Seal> {
    let mut all = SealRules::new(&["internal.example.com"]);
    rules.iter().for_each(|(resource, providers)| all.add(resource, providers).unwrap());
    Seal::new(all, metrics())
}

/// Returns the JSON and true if it is stale, or the error.
async fn open_value(seal: &Seal, key: &Key, stored: StoredValue<'_>) -> Result<(Vec<u8>, bool), String> {
    let opened = seal.open(key, stored).await.map_err(|error| error.to_string())?;
    Ok((opened.json.into_owned(), opened.stale))
}

#[test]
fn internal_records_are_sealed_like_the_configured_resource() {
    let keys = Resource::new("internal.example.com", "keys");
    for rule in ["secrets", "*.", "*.*"] {
        let mut rules = SealRules::new(&["internal.example.com"]);
        rules = rules.seal_as(keys.clone(), Resource::new("", "secrets"));
        rules.add(rule, &[]).unwrap();
        let seal = Seal::new(rules, metrics());
        assert!(seal.covers(&keys), "{rule}");
        assert!(!seal.covers(&Resource::new("internal.example.com", "others")), "{rule}");
    }
}

#[tokio::test]
async fn values_that_upstream_has_sealed_are_opened() {
    for (kind, prefix, length, hex) in [
        (
            CipherKind::AesGcm,
            "aesgcm",
            16,
            "ef1a6ca4003410fe29b2befa2230f450b1842eb006703c5fe14eb89b201ab5e0844d71469e37a7d6fc4393",
        ),
        (
            CipherKind::AesGcm,
            "aesgcm",
            24,
            "cbbb06026e28bebbec32a4fa10105f1214aa008a031fecc119f9b58dca100f0fc187cac5856c51bd6a73ae",
        ),
        (
            CipherKind::AesGcm,
            "aesgcm",
            32,
            "011d70e3777e9412778225a4033e8661f892b273d4a58d401cb6932ea9244676228faea5af9207f6ca9038",
        ),
        (
            CipherKind::AesCbc,
            "aescbc",
            16,
            "cfdf7745f8e359a1c87c397fd8669dadff453110ec978125f05a9397a1b74490",
        ),
        (
            CipherKind::AesCbc,
            "aescbc",
            24,
            "37b21b2c550d4cf86442c8df2722c32573670443163c76ac7a3a50114f58fcf9",
        ),
        (
            CipherKind::AesCbc,
            "aescbc",
            32,
            "0ae1b1246ef0a6d91c1e50716e5b63468ec67f87b0928164906367d9333e889d",
        ),
        (
            CipherKind::Secretbox,
            "secretbox",
            32,
            concat!(
                "11e90199b715c4387cfacfc3c208d980238d3454ed854c6892ff4b23e15027d3bd745dc2492c0a4cd8158b12be",
                "234f0b7799b52968ac77",
            ),
        ),
    ] {
        let seal = seal(&[("secrets", &[local(kind, &[("k1", &sequential_bytes(length))])])]);
        let mut stored = format!("k8s:enc:{prefix}:v1:k1:").into_bytes();
        stored.extend(decode_hex(hex));
        assert_eq!(
            open_value(&seal, &key(), StoredValue::Sealed(&stored)).await,
            Ok((PLAIN.to_vec(), false)),
            "{kind:?}"
        );
        let last = stored.len() - 1;
        stored[last] ^= 1;
        assert!(open_value(&seal, &key(), StoredValue::Sealed(&stored)).await.is_err(), "{kind:?}");
    }
}

#[tokio::test]
async fn a_sealed_value_can_only_be_opened_at_its_own_key() {
    let other_key = Key::new(&Resource::new("", "secrets"), "default", "y");
    for (kind, is_bound) in
        [(CipherKind::AesGcm, true), (CipherKind::AesCbc, false), (CipherKind::Secretbox, false)]
    {
        let seal = seal(&[("secrets", &[local(kind, &[("k1", &sequential_bytes(32))])])]);
        for length in [0, 1, 15, 16, 17, 1000] {
            let plain = vec![b'x'; length];
            let sealed = seal.seal(&key(), &plain).unwrap().unwrap();
            assert!(length < 15 || !sealed.windows(length).any(|window| window == plain));
            assert_eq!(open_value(&seal, &key(), StoredValue::Sealed(&sealed)).await, Ok((plain, false)));
            assert_eq!(
                open_value(&seal, &other_key, StoredValue::Sealed(&sealed)).await.is_err(),
                is_bound,
                "{kind:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_first_provider_seals_and_values_of_other_providers_are_stale() {
    let (old, new) = (sequential_bytes(16), sequential_bytes(32));
    let before = seal(&[("secrets", &[local(CipherKind::AesCbc, &[("old", &old)])])]);
    let sealed = before.seal(&key(), PLAIN).unwrap().unwrap();
    let keys = local(CipherKind::AesCbc, &[("new", &new), ("old", &old)]);
    let providers = local(CipherKind::Secretbox, &[("new", &new)]);
    for rotated in [vec![keys], vec![providers, local(CipherKind::AesCbc, &[("old", &old)])]] {
        let after = seal(&[("secrets", &rotated)]);
        assert_eq!(
            open_value(&after, &key(), StoredValue::Sealed(&sealed)).await,
            Ok((PLAIN.to_vec(), true))
        );
        let resealed = after.seal(&key(), PLAIN).unwrap().unwrap();
        assert_eq!(
            open_value(&after, &key(), StoredValue::Sealed(&resealed)).await,
            Ok((PLAIN.to_vec(), false))
        );
    }
    let another = seal(&[("secrets", &[local(CipherKind::AesGcm, &[("new", &new)])])]);
    let refused = open_value(&another, &key(), StoredValue::Sealed(&sealed)).await;
    assert_eq!(refused, Err("no matching prefix found".to_owned()));
    let renamed = seal(&[("secrets", &[local(CipherKind::AesCbc, &[("other", &old)])])]);
    let refused = open_value(&renamed, &key(), StoredValue::Sealed(&sealed)).await;
    assert_eq!(refused, Err("no matching key was found for the provided AES transformer".to_owned()));
}

#[tokio::test]
async fn plain_values_are_read_where_identity_is_among_the_providers() {
    let keys = || local(CipherKind::AesGcm, &[("k", &sequential_bytes(32))]);
    let identity = || Arc::new(Provider::Identity);
    let read = async |providers: &[Arc<Provider>]| {
        open_value(&seal(&[("secrets", providers)]), &key(), StoredValue::Plain(PLAIN)).await
    };
    assert_eq!(read(&[keys(), identity()]).await, Ok((PLAIN.to_vec(), true)));
    assert_eq!(read(&[identity(), keys()]).await, Ok((PLAIN.to_vec(), false)));
    assert_eq!(read(&[keys()]).await, Err("no matching prefix found".to_owned()));
    let decommissioned = seal(&[("secrets", &[identity(), keys()])]);
    assert_eq!(decommissioned.seal(&key(), PLAIN), Ok(None));
    let sealed = seal(&[("secrets", &[keys()])]).seal(&key(), PLAIN).unwrap().unwrap();
    assert_eq!(
        open_value(&decommissioned, &key(), StoredValue::Sealed(&sealed)).await,
        Ok((PLAIN.to_vec(), true))
    );
    let refused = open_value(&Seal::none(), &key(), StoredValue::Sealed(&sealed)).await;
    assert_eq!(refused, Err("identity transformer tried to read encrypted data".to_owned()));
}

#[test]
fn the_most_specific_rule_applies_and_masked_rules_are_rejected() {
    let provider = || [local(CipherKind::AesGcm, &[("k", &sequential_bytes(32))])];
    let seal =
        seal(&[("events", &[Arc::new(Provider::Identity)]), ("*.apps", &provider()), ("*.*", &provider())]);
    let seals = |group: &str, name: &str| {
        let key = Key::new(&Resource::new(group, name), "a", "b");
        seal.seal(&key, PLAIN).unwrap().is_some()
    };
    assert!(seals("", "secrets") && seals("apps", "deployments") && seals("example.com", "things"));
    assert!(!seals("", "events") && !seals("internal.example.com", "things"));
    for (earlier, later, message) in [
        ("*.apps", "deployments.apps", r#"resource "deployments.apps" is masked by earlier rule "*.apps""#),
        ("*.", "secrets", r#"resource "secrets" is masked by earlier rule "*.""#),
        ("*.*", "*.", r#"resource "*." is masked by earlier rule "*.*""#),
    ] {
        let mut rules = SealRules::default();
        rules.add(earlier, &provider()).unwrap();
        assert_eq!(rules.add(later, &provider()).unwrap_err().to_string(), message);
    }
}

/// Key service that wraps a key by prefixing it with a name.
#[derive(Default)]
struct Service {
    key_id: Mutex<String>,
    unavailable: AtomicBool,
    wrapped: AtomicUsize,
    unwrapped: AtomicUsize,
}

impl Service {
    fn answer(&self) -> Result<String, KeyServiceError> {
        match self.unavailable.load(Ordering::SeqCst) {
            true => {
                Err(KeyServiceError { text: "away".to_owned(), code: "Unavailable", is_unreachable: true })
            }
            false => Ok(self.key_id.lock().clone()),
        }
    }
}

impl KeyService for Service {
    fn status(&self) -> BoxFuture<'_, Result<KeyStatus, KeyServiceError>> {
        let status = |key_id| KeyStatus { version: "v2".to_owned(), healthz: "ok".to_owned(), key_id };
        Box::pin(async move { self.answer().map(status) })
    }

    fn encrypt<'a>(
        &'a self,
        _: &'a str,
        plaintext: &'a [u8],
    ) -> BoxFuture<'a, Result<WrappedKey, KeyServiceError>> {
        Box::pin(async move {
            let key_id = self.answer()?;
            self.wrapped.fetch_add(1, Ordering::SeqCst);
            let annotations = HashMap::from([("kms.example.com".to_owned(), b"a".to_vec())]);
            Ok(WrappedKey { ciphertext: [b"wrapped:", plaintext].concat(), key_id, annotations })
        })
    }

    fn decrypt<'a>(
        &'a self,
        _: &'a str,
        wrapped: WrappedKey,
    ) -> BoxFuture<'a, Result<Zeroizing<Vec<u8>>, KeyServiceError>> {
        Box::pin(async move {
            self.answer()?;
            self.unwrapped.fetch_add(1, Ordering::SeqCst);
            let key = wrapped.ciphertext.strip_prefix(b"wrapped:".as_slice());
            // Bytes with which upstream's value was sealed.
            Ok(Zeroizing::new(key.map_or_else(|| sequential_bytes(32), <[u8]>::to_vec)))
        })
    }
}

fn envelope(service: &Arc<Service>, write_ttl: Duration) -> (Arc<Envelope>, Arc<Seal>) {
    let times = EnvelopeTimes { write_ttl, refusal_ttl: Duration::ZERO };
    let envelope = Envelope::new("kms", Arc::clone(service) as Arc<dyn KeyService>, times, metrics());
    let seal = seal(&[("secrets", &[Arc::new(Provider::Kms(Arc::clone(&envelope)))])]);
    (envelope, seal)
}

fn service(key_id: &str) -> Arc<Service> {
    Arc::new(Service { key_id: Mutex::new(key_id.to_owned()), ..Service::default() })
}

#[tokio::test]
async fn a_value_of_upstreams_kms_v2_is_opened() {
    let service = service("key-1");
    let (envelope, seal) = envelope(&service, Duration::MAX / 4);
    envelope.probe().await.unwrap();
    let hex = concat!(
        "0a4b9cca76cc95479e40b6dd7d48fbae9996a693acd5a1b6db536a5ef2f792ef56c788c7ad7271b30978e2f84f",
        "2ae80ea1fdd8762a19ed6fe404c5ff83bcdeec1e6d886555a588e5f29337321712056b65792d311a0777726170",
        "70656422120a0d612e6578616d706c652e636f6d1201622801",
    );
    let stored = [b"k8s:enc:kms:v2:kms:".to_vec(), decode_hex(hex)].concat();
    assert_eq!(open_value(&seal, &key(), StoredValue::Sealed(&stored)).await, Ok((PLAIN.to_vec(), false)));
}

#[tokio::test]
async fn a_key_is_wrapped_once_per_key_id_and_values_of_the_previous_key_are_stale() {
    let service = service("one");
    let (envelope, seal) = envelope(&service, Duration::from_secs(3600));
    assert!(seal.seal(&key(), PLAIN).is_err(), "the service was not probed");
    envelope.probe().await.unwrap();
    envelope.probe().await.unwrap();
    let sealed: Vec<_> = (0..3).map(|_| seal.seal(&key(), PLAIN).unwrap().unwrap()).collect();
    assert_ne!(sealed[0], sealed[1]);
    assert_eq!(open_value(&seal, &key(), StoredValue::Sealed(&sealed[0])).await, Ok((PLAIN.to_vec(), false)));
    assert_eq!((service.wrapped.load(Ordering::SeqCst), service.unwrapped.load(Ordering::SeqCst)), (1, 0));
    *service.key_id.lock() = "two".to_owned();
    envelope.probe().await.unwrap();
    assert_eq!(open_value(&seal, &key(), StoredValue::Sealed(&sealed[0])).await, Ok((PLAIN.to_vec(), true)));
    assert_eq!((service.wrapped.load(Ordering::SeqCst), service.unwrapped.load(Ordering::SeqCst)), (2, 0));
}

#[tokio::test]
async fn during_an_outage_cached_keys_open_values_and_sealing_ends_after_the_ttl() {
    let service = service("one");
    let (known, seal) = envelope(&service, Duration::ZERO);
    known.probe().await.unwrap();
    let (_, other) = envelope(&service, Duration::from_secs(3600));
    let (lasting, writes) = envelope(&service, Duration::from_secs(3600));
    lasting.probe().await.unwrap();
    let sealed = writes.seal(&key(), PLAIN).unwrap().unwrap();
    service.unavailable.store(true, Ordering::SeqCst);
    assert!(lasting.probe().await.is_err() && lasting.health().is_err());
    assert_eq!(open_value(&writes, &key(), StoredValue::Sealed(&sealed)).await, Ok((PLAIN.to_vec(), false)));
    assert!(writes.seal(&key(), PLAIN).is_ok());
    let expired = seal.seal(&key(), PLAIN).unwrap_err().to_string();
    assert!(
        expired.contains("encryptedDEKSource with keyID hash \"sha256:") && expired.contains("expired at"),
        "{expired}"
    );
    let unread = other.open(&key(), StoredValue::Sealed(&sealed)).await;
    assert!(
        matches!(&unread, Err(SealError::Unavailable { text, .. }) if text == "failed to decrypt DEK, error: away"),
        "{unread:?}"
    );
    service.unavailable.store(false, Ordering::SeqCst);
    assert_eq!(open_value(&other, &key(), StoredValue::Sealed(&sealed)).await, Ok((PLAIN.to_vec(), true)));
}

#[tokio::test]
async fn concurrent_reads_unwrap_a_key_once() {
    let service = service("one");
    let (envelope, writes) = self::envelope(&service, Duration::from_secs(3600));
    envelope.probe().await.unwrap();
    let sealed = writes.seal(&key(), PLAIN).unwrap().unwrap();
    let (_, reads) = self::envelope(&service, Duration::from_secs(3600));
    let key = key();
    let all =
        futures::future::join_all((0..50).map(|_| open_value(&reads, &key, StoredValue::Sealed(&sealed))))
            .await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(service.unwrapped.load(Ordering::SeqCst), 1);
}
