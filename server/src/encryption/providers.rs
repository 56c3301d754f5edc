//! Construction of the seal's rules from the configuration: keys, key services, and the providers of each resource.

use std::sync::{Arc, Weak};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_store::{
    CipherKey, CipherKind, Envelope, EnvelopeTimes, KeyError, Provider, Resource, SealMetrics, SealRules,
};
use zeroize::Zeroizing;

use super::configuration::{KeyRule, KmsRule, ProviderRule, ResourceRule};
use super::error::EncryptionError;
use super::kms::KmsClient;

/// Plural and group of the records that hold shared keys of control services.
pub(crate) const SHARED_FILES: (&str, &str) = ("sharedfiles", "portico.dev");

/// Groups of internal records, which are not objects of the API.
const INTERNAL_GROUPS: &[&str] = &["portico.dev"];

/// Interval between probes of a healthy key service.
const HEALTHY_PROBE_INTERVAL: Duration = Duration::from_secs(20);
/// Interval between probes of an unhealthy key service, as in upstream while /healthz is requested.
const UNHEALTHY_PROBE_INTERVAL: Duration = Duration::from_secs(3);

/// Rules and key services of a configuration.
pub(super) struct BuiltConfiguration {
    pub(super) rules: SealRules,
    /// Key services in the order of the file.
    pub(super) services: Vec<Arc<Envelope>>,
}

/// Builds the rules. Key services are not called.
///
/// # Errors
/// [`EncryptionError`]: masked rules, KMS v1.
pub(super) fn build(
    configuration: &[ResourceRule],
    metrics: &SealMetrics,
    registry: &Registry,
) -> Result<BuiltConfiguration, EncryptionError> {
    let (resource, group) = SHARED_FILES;
    let (keys, secrets) = (Resource::new(group, resource), Resource::new("", "secrets"));
    let rules = SealRules::new(INTERNAL_GROUPS).seal_as(keys, secrets);
    let mut built = BuiltConfiguration { rules, services: Vec::new() };
    for rule in configuration {
        let providers = rule.providers.iter().map(|provider| {
            let provider = self::provider(provider, metrics, registry)?;
            if let Provider::Kms(service) = &provider {
                built.services.push(Arc::clone(service));
            }
            Ok(Arc::new(provider))
        });
        let providers = providers.collect::<Result<Vec<_>, EncryptionError>>()?;
        for resource in &rule.resources {
            built.rules.add(resource, &providers)?;
        }
    }
    Ok(built)
}

fn provider(
    rule: &ProviderRule,
    metrics: &SealMetrics,
    registry: &Registry,
) -> Result<Provider, EncryptionError> {
    Ok(match rule {
        ProviderRule::Identity => Provider::Identity,
        ProviderRule::AesGcm(keys) => {
            Provider::Keys(CipherKind::AesGcm, named_keys(keys, CipherKey::aes_gcm)?)
        }
        ProviderRule::AesCbc(keys) => {
            Provider::Keys(CipherKind::AesCbc, named_keys(keys, CipherKey::aes_cbc)?)
        }
        ProviderRule::Secretbox(keys) => {
            Provider::Keys(CipherKind::Secretbox, named_keys(keys, CipherKey::secretbox)?)
        }
        ProviderRule::Kms(kms) => Provider::Kms(key_service(kms, metrics, registry)?),
    })
}

fn named_keys(
    keys: &[KeyRule],
    new_key: fn(&[u8]) -> Result<CipherKey, KeyError>,
) -> Result<Vec<(String, CipherKey)>, EncryptionError> {
    let named_keys = keys.iter().map(|key| {
        let key_error = |error: String| EncryptionError::Provider(format!("{} {}: {error}", "key", key.name));
        let bytes = STANDARD.decode(key.secret.as_bytes()).map_err(|error| key_error(error.to_string()))?;
        let bytes = Zeroizing::new(bytes);
        Ok((key.name.clone(), new_key(&bytes).map_err(|error| key_error(error.to_string()))?))
    });
    named_keys.collect()
}

fn key_service(
    rule: &KmsRule,
    metrics: &SealMetrics,
    registry: &Registry,
) -> Result<Arc<Envelope>, EncryptionError> {
    if rule.version != "v2" {
        // Upstream's message if its gate for KMS v1 is disabled.
        return Err(EncryptionError::Provider(
            "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead."
                .to_owned(),
        ));
    }
    let client = KmsClient::new(&rule.name, &rule.endpoint, rule.timeout, registry).map_err(|error| {
        let name = &rule.name;
        EncryptionError::Provider(format!(
            "could not configure KMSv2-Plugin's probe {name:?}, error: {error}"
        ))
    })?;
    let times = EnvelopeTimes { refusal_ttl: UNHEALTHY_PROBE_INTERVAL, ..EnvelopeTimes::default() };
    Ok(Envelope::new(&rule.name, Arc::new(client), times, metrics.clone()))
}

/// Probes a key service at an interval, until it is no longer used.
pub(super) fn poll(service: &Arc<Envelope>, tasks: &TaskSet) {
    let service: Weak<Envelope> = Arc::downgrade(service);
    tasks.spawn_until_cancelled("kms-probe", async move {
        loop {
            let Some(healthy) = service.upgrade().map(|service| service.health().is_ok()) else { return };
            tokio::time::sleep(if healthy { HEALTHY_PROBE_INTERVAL } else { UNHEALTHY_PROBE_INTERVAL }).await;
            let Some(service) = service.upgrade() else { return };
            if let Err(error) = service.probe().await {
                tracing::warn!(error, "key service is not healthy");
            }
        }
    });
}
