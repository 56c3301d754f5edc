//! The configuration file: `EncryptionConfiguration` of apiserver.config.k8s.io/v1, decoded strictly, defaulted and validated.

use std::path::Path;
use std::time::Duration;

use portico_kit::config_file;
use portico_machinery::digest::sha256_label;
use portico_machinery::{Cursor, Object};
use portico_schema::configuration::{ConfigKind, Scheme};
use zeroize::Zeroizing;

use super::error::EncryptionError;
use super::validation::{api_version, timeout, validate};

const KIND: &str = "EncryptionConfiguration";
const SCHEME: Scheme = Scheme {
    kinds: &[ConfigKind { version: "apiserver.config.k8s.io/v1", kind: KIND, ty: KIND }],
    types: r#"{
        "EncryptionConfiguration": {"fields": {
            "kind": {"type": "string"}, "apiVersion": {"type": "string"},
            "resources": {"type": "[]ResourceConfiguration"}
        }},
        "ResourceConfiguration": {"fields": {
            "resources": {"type": "[]string"}, "providers": {"type": "[]ProviderConfiguration"}
        }},
        "ProviderConfiguration": {"fields": {
            "aesgcm": {"type": "KeysConfiguration", "emit": "pointer"},
            "aescbc": {"type": "KeysConfiguration", "emit": "pointer"},
            "secretbox": {"type": "KeysConfiguration", "emit": "pointer"},
            "identity": {"type": "IdentityConfiguration", "emit": "pointer"},
            "kms": {"type": "KMSConfiguration", "emit": "pointer"}
        }},
        "KeysConfiguration": {"fields": {"keys": {"type": "[]Key"}}},
        "Key": {"fields": {"name": {"type": "string"}, "secret": {"type": "string"}}},
        "IdentityConfiguration": {"fields": {}},
        "KMSConfiguration": {"fields": {
            "apiVersion": {"type": "string"}, "name": {"type": "string"}, "cachesize": {"type": "int32", "emit": "pointer"},
            "endpoint": {"type": "string"}, "timeout": {"type": "string"}
        }}
    }"#,
    strict: true,
};

/// Configuration that was read from a file.
pub(super) struct LoadedConfiguration {
    pub(super) configuration: Vec<ResourceRule>,
    /// Hash of the file. The bytes themselves are not stored, because they contain keys.
    pub(super) hash: String,
}

/// Resources and the providers that encrypt them.
pub(super) struct ResourceRule {
    pub(super) resources: Vec<String>,
    pub(super) providers: Vec<ProviderRule>,
}

/// Provider of encryption.
pub(super) enum ProviderRule {
    Identity,
    AesGcm(Vec<KeyRule>),
    AesCbc(Vec<KeyRule>),
    Secretbox(Vec<KeyRule>),
    Kms(KmsRule),
}

/// Key, encoded as base64.
pub(super) struct KeyRule {
    pub(super) name: String,
    pub(super) secret: Zeroizing<String>,
}

/// Key service.
pub(super) struct KmsRule {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) endpoint: String,
    pub(super) timeout: Duration,
}

/// Reads the file.
///
/// # Errors
/// [`EncryptionError`] with upstream's message.
pub(super) fn read(path: &Path, reload: bool) -> Result<LoadedConfiguration, EncryptionError> {
    let file = |error| EncryptionError::File { path: path.to_owned(), error };
    let bytes = Zeroizing::new(config_file::read(path).map_err(file)?);
    if bytes.is_empty() {
        return Err(EncryptionError::Empty(path.to_owned()));
    }
    let decode = |error| EncryptionError::Decode { path: path.to_owned(), error };
    let object = SCHEME.decode(&bytes).map_err(decode)?;
    let errors = validate(&object, reload);
    if !errors.is_empty() {
        return Err(EncryptionError::Invalid(errors));
    }
    Ok(LoadedConfiguration { configuration: rules(&object), hash: sha256_label(&bytes) })
}

/// Returns the hash of the file, which changes with its content.
pub(super) fn hash(path: &Path) -> Result<String, EncryptionError> {
    let file = |error| EncryptionError::File { path: path.to_owned(), error };
    Ok(sha256_label(&config_file::read(path).map_err(file)?))
}

fn rules(object: &Object) -> Vec<ResourceRule> {
    let rule = |rule: Cursor<'_>| ResourceRule {
        resources: rule.field("resources").items().map(|resource| resource.str().to_owned()).collect(),
        providers: rule.field("providers").items().filter_map(|provider| provider_rule(&provider)).collect(),
    };
    object.at(&["resources"]).items().map(rule).collect()
}

/// Returns the rule of a provider; validation ensures that exactly one type is set.
fn provider_rule(provider: &Cursor<'_>) -> Option<ProviderRule> {
    let keys = |name| {
        let field = provider.field(name);
        let key = |key: Cursor<'_>| KeyRule {
            name: key.field("name").str().to_owned(),
            secret: Zeroizing::new(key.field("secret").str().to_owned()),
        };
        field.is_present().then(|| field.field("keys").items().map(key).collect::<Vec<_>>())
    };
    let kms = provider.field("kms");
    if kms.is_present() {
        return Some(ProviderRule::Kms(KmsRule {
            name: kms.field("name").str().to_owned(),
            version: api_version(&kms).to_owned(),
            endpoint: kms.field("endpoint").str().to_owned(),
            timeout: timeout(&kms)?,
        }));
    }
    let key_rule = keys("aesgcm").map(ProviderRule::AesGcm);
    let key_rule = key_rule.or_else(|| keys("aescbc").map(ProviderRule::AesCbc));
    let key_rule = key_rule.or_else(|| keys("secretbox").map(ProviderRule::Secretbox));
    key_rule.or_else(|| provider.field("identity").is_present().then_some(ProviderRule::Identity))
}
