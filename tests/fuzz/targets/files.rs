//! Contents of files and databases: policies, schemas, objects of every kind, backups, sealed values.

use std::collections::HashMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use portico_audit::Policy;
use portico_auth::authz::abac::Policies;
use portico_kinds::Kinds;
use portico_kit::metrics::Registry;
use portico_machinery::protobuf::decode_envelope;
use portico_machinery::{GroupVersion, GroupVersionKind, Object, RequestInfo};
use portico_schema::structural::definition::{MetadataRules, Requirements, validate};
use portico_schema::{DecodeError, Format, Schema, Structural, Typed};
use portico_store::{
    ArchivePart, BackupFile, BackupPart, CipherKey, CipherKind, Envelope, EnvelopeTimes, KeyService,
    KeyServiceError, KeyStatus, Provider, Seal, SealMetrics, SealRules, StoredState, WrappedKey,
};
use zeroize::Zeroizing;

use super::check_decoding;
use crate::input::{halves, text};

/// Checks that a valid policy can be evaluated for a request.
pub fn audit_policies() -> impl Fn(&[u8]) {
    let request = RequestInfo::parse("GET", "/api/v1/namespaces/a/secrets/b", "").unwrap();
    move |input| {
        let Ok(policy) = Policy::parse(&text(input)) else { return };
        let _ = policy.warnings();
        let _ = policy.evaluate(None, &request);
    }
}

pub fn abac_policies() -> impl Fn(&[u8]) {
    |input| {
        let _ = Policies::parse(&text(input));
    }
}

/// Checks that an object of any kind has a stored form that can be encoded as JSON and as protobuf, and
/// decoded again without a change.
pub fn objects_of_every_kind() -> impl Fn(&[u8]) {
    let kinds = Kinds::all().unwrap();
    let kinds: HashMap<_, _> = kinds.iter().map(|kind| (kind.gvk.clone(), kind.schema.clone())).collect();
    move |input| {
        let (format, kind) = match decode_envelope(input) {
            Ok(envelope) => (Format::Protobuf, gvk(&envelope.api_version, &envelope.kind)),
            Err(_) => {
                let Ok(object) = Object::from_json(input) else { return };
                (Format::Json, gvk(object.api_version(), object.kind()))
            }
        };
        let Some((kind, schema)) = kind.and_then(|kind| Some((kinds.get(&kind)?, kind))).map(|(s, g)| (g, s))
        else {
            return;
        };
        let read = |body: &[u8], format| {
            let mut decoded = schema.decode(body, format, &kind)?;
            schema.normalize(&mut decoded.object);
            Ok::<_, DecodeError>(decoded)
        };
        let Ok(sent) = read(input, format) else { return };
        // A float without a fraction in an untyped value is decoded as an integer afterwards.
        let mut stored = read(&sent.object.to_json(), Format::Json).expect("encoded data can be decoded");
        assert!(stored.strict.is_empty(), "{:?}", stored.strict);
        let sealed = schema.to_enveloped_protobuf(&stored.object);
        for (bytes, format) in [(stored.object.to_json(), Format::Json), (sealed, Format::Protobuf)] {
            assert_eq!(read(&bytes, format).expect("encoded data can be decoded").object, stored.object);
        }
        schema.default(&mut stored.object);
        let _ = schema.validate(&stored.object);
    }
}

fn gvk(api_version: &str, kind: &str) -> Option<GroupVersionKind> {
    Some(api_version.parse::<GroupVersion>().ok()?.kind(kind))
}

fn object_meta() -> Typed {
    let kinds = Kinds::builtin().unwrap();
    let config_map =
        kinds.iter().find(|kind| kind.gvk.kind == "ConfigMap").unwrap().schema.field_schema("metadata");
    config_map.unwrap().typed().unwrap().clone()
}

/// Checks the schema of a definition on the first line, and an object of it after the line end.
pub fn custom_resources() -> impl Fn(&[u8]) {
    let (types, gvk) = (object_meta(), GroupVersion::new("g.io", "v1").kind("K"));
    move |input| {
        let (schema, body) = halves(input);
        let wrapped = [br#"{"s":"#, schema, b"}"].concat();
        if let Ok(definition) = Object::from_json(&wrapped) {
            let metadata = MetadataRules { types: &types, rules: &|_, _| Vec::new() };
            let _ = validate(&definition.at(&["s"]), &Requirements::NEW_DEFINITION, metadata, &|| false);
        }
        let Ok(compiled) = Structural::from_json(schema) else { return };
        let schema = Schema::structural(compiled, types.clone());
        check_decoding(&schema, &gvk, body, Format::Json);
        let Ok(mut decoded) = schema.decode(body, Format::Json, &gvk) else { return };
        let custom = schema.custom().unwrap();
        let _ =
            (custom.check_rules(&decoded.object, None, &|| false), custom.validate_lists(&decoded.object));
        schema.coerce_and_default(&mut decoded.object);
        assert!(!schema.coerce_and_default(&mut decoded.object), "coercion and defaulting are idempotent");
    }
}

/// Checks a backup, and that the states of a block can be encoded and decoded again without a change.
pub fn backups() -> impl Fn(&[u8]) {
    |input| {
        if let Ok(mut file) = BackupFile::read(input) {
            while let Ok(Some(part)) = file.next_part() {
                let counts = file.counts();
                match part {
                    BackupPart::States(states) => assert!(counts.objects >= states.len() as u64),
                    BackupPart::Archive(part) => {
                        assert!(counts.past_states >= Some(part.states.len() as u64))
                    }
                }
            }
        }
        if let Ok(part) = ArchivePart::decode(input) {
            assert_eq!(ArchivePart::decode(&part.clone().encode()), Ok(part));
        }
        let Ok(states) = StoredState::decode_all(input) else { return };
        assert!(states.iter().all(|state| state.json().is_none_or(|json| json.len() < state.value.len())));
        let again = StoredState::decode_all(&StoredState::encode_all(states.clone()));
        assert_eq!(again, Ok(states));
    }
}

/// Key service that accepts every request.
struct AnyKey;

impl KeyService for AnyKey {
    fn status(&self) -> BoxFuture<'_, Result<KeyStatus, KeyServiceError>> {
        std::future::ready(Ok(KeyStatus::default())).boxed()
    }

    fn encrypt<'a>(&'a self, _: &'a str, _: &'a [u8]) -> BoxFuture<'a, Result<WrappedKey, KeyServiceError>> {
        std::future::ready(Ok(WrappedKey::default())).boxed()
    }

    fn decrypt<'a>(
        &'a self,
        _: &'a str,
        wrapped: WrappedKey,
    ) -> BoxFuture<'a, Result<Zeroizing<Vec<u8>>, KeyServiceError>> {
        std::future::ready(Ok(Zeroizing::new(wrapped.ciphertext))).boxed()
    }
}

/// Checks that values with invalid seals cannot be opened.
pub fn sealed_values() -> impl Fn(&[u8]) {
    const KEY: [u8; 32] = [7; 32];
    let metrics = || SealMetrics::new(&Registry::new(), "server");
    let keys = |key| vec![("k".to_owned(), key)];
    let providers = [
        Provider::Keys(CipherKind::AesGcm, keys(CipherKey::aes_gcm(&KEY).unwrap())),
        Provider::Keys(CipherKind::AesCbc, keys(CipherKey::aes_cbc(&KEY).unwrap())),
        Provider::Keys(CipherKind::Secretbox, keys(CipherKey::secretbox(&KEY).unwrap())),
        Provider::Kms(Envelope::new("p", Arc::new(AnyKey), EnvelopeTimes::default(), metrics())),
    ]
    .map(Arc::new);
    let mut rules = SealRules::new(&[]);
    rules.add("secrets", &providers).unwrap();
    let seal = Seal::new(rules, metrics());
    move |input| {
        if let Ok(plain) = futures::executor::block_on(seal.open_sealed("secrets", b"place", input)) {
            // AES-CBC does not authenticate values.
            assert!(input.starts_with(b"k8s:enc:aescbc:"), "{plain:?}");
        }
    }
}
