//! Encryption of values at rest: values are sealed on write and opened on read, as configured by
//! upstream's `EncryptionConfiguration`.
//!
//! [`SealRules`] define which resources are sealed with which providers, and are replaced atomically. Values in memory are plain.
//! Independent of files, kinds and gRPC: callers pass a [`KeyService`].

mod cipher;
mod envelope;
mod error;
mod key_metrics;
mod key_service;
mod metrics;
mod object;
mod provider;
mod rules;
mod stored_value;

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use tokio::sync::watch;

pub use cipher::{CipherKey, KeyError};
pub use envelope::{Envelope, EnvelopeTimes};
pub use error::SealError;
pub use key_service::{KeyService, KeyServiceError, KeyStatus, WrappedKey};
pub use metrics::SealMetrics;
pub use provider::{CipherKind, Provider};
pub use rules::{MaskedRule, SealRules};

use crate::key::Key;
use crate::key::Resource;
use provider::Providers;
pub(crate) use stored_value::{OpenedValue, StoredValue};

/// Seals and opens values; shared by a store and the code that changes the rules.
pub struct Seal {
    rules: ArcSwap<SealRules>,
    rules_replaced: watch::Sender<()>,
    metrics: Option<SealMetrics>,
}

impl Seal {
    /// Creates a `Seal` without rules: it seals nothing, and cannot open sealed values.
    #[must_use]
    pub fn none() -> Arc<Self> {
        Arc::new(Self { rules: ArcSwap::default(), rules_replaced: watch::Sender::default(), metrics: None })
    }

    /// Creates a `Seal` with these rules.
    #[must_use]
    pub fn new(rules: SealRules, metrics: SealMetrics) -> Arc<Self> {
        let rules = ArcSwap::from_pointee(rules);
        Arc::new(Self { rules, rules_replaced: watch::Sender::default(), metrics: Some(metrics) })
    }

    /// Replaces the rules for all later writes and reads.
    pub fn replace(&self, rules: SealRules) {
        self.rules.store(Arc::new(rules));
        self.rules_replaced.send_replace(());
    }

    /// Returns a receiver that is notified when the rules change: values that could not be opened may be readable then.
    pub(crate) fn rules_replaced(&self) -> watch::Receiver<()> {
        self.rules_replaced.subscribe()
    }

    /// True if there are any rules.
    pub(crate) fn is_active(&self) -> bool {
        !self.rules.load().is_empty()
    }

    /// True if a rule covers this resource.
    pub(crate) fn covers(&self, resource: &Resource) -> bool {
        self.rules.load().find(resource).is_some()
    }

    /// Returns the resources that a rule covers, sorted.
    pub(crate) fn covered_resources(&self, resources: impl IntoIterator<Item = Resource>) -> Vec<Resource> {
        let mut covered: Vec<Resource> =
            resources.into_iter().filter(|resource| self.covers(resource)).collect();
        covered.sort();
        covered
    }

    /// Seals a value for the database; `None` if it is stored plain.
    pub(crate) fn seal(&self, key: &Key, json: &[u8]) -> Result<Option<Vec<u8>>, SealError> {
        self.seal_at(key.resource(), key.to_string().as_bytes(), json)
    }

    /// Seals bytes whose authentication includes this location: they cannot be opened at another location.
    pub(crate) fn seal_at(
        &self,
        resource: &Resource,
        location: &[u8],
        plain: &[u8],
    ) -> Result<Option<Vec<u8>>, SealError> {
        let rules = self.rules.load();
        let Some(providers) = rules.find(resource) else { return Ok(None) };
        let started = Instant::now();
        let Some(provider) = providers.first() else { return Ok(None) };
        let sealed = provider.seal(plain, location);
        let failed = sealed.as_ref().err();
        self.count(resource, "to_storage", provider.prefix(), started, failed);
        sealed
    }

    /// Returns the JSON of a stored value.
    pub(crate) async fn open<'a>(
        &self,
        key: &Key,
        stored: StoredValue<'a>,
    ) -> Result<OpenedValue<'a>, SealError> {
        self.open_at(key.resource(), key.to_string().as_bytes(), stored).await
    }

    /// Opens bytes as a sealed value of a resource of the core group, for `tests/fuzz`.
    ///
    /// # Errors
    /// If the bytes cannot be opened.
    #[doc(hidden)]
    pub async fn open_sealed(
        &self,
        resource: &str,
        location: &[u8],
        sealed: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        let opened = self.open_at(&Resource::new("", resource), location, StoredValue::Sealed(sealed)).await;
        opened.map(|opened| opened.json.into_owned())
    }

    /// Opens a value that was sealed for this location.
    pub(crate) async fn open_at<'a>(
        &self,
        resource: &Resource,
        location: &[u8],
        stored: StoredValue<'a>,
    ) -> Result<OpenedValue<'a>, SealError> {
        let providers = self.rules.load().find(resource).cloned();
        match (providers, stored) {
            (None, StoredValue::Plain(json)) => Ok(OpenedValue { json: json.into(), stale: false }),
            (None, StoredValue::Sealed(_)) => {
                Err(SealError::refused("identity transformer tried to read encrypted data"))
            }
            (Some(providers), stored) => {
                self.open_with_provider(&providers, resource, location, stored).await
            }
        }
    }

    /// Tries the providers whose prefix matches, in order, like upstream's `prefixTransformers`.
    async fn open_with_provider<'a>(
        &self,
        providers: &Providers,
        resource: &Resource,
        location: &[u8],
        stored: StoredValue<'a>,
    ) -> Result<OpenedValue<'a>, SealError> {
        let started = Instant::now();
        let mut errors = Vec::new();
        for (index, provider) in providers.iter().enumerate() {
            let Some(opened) = provider.open(stored, location).await else { continue };
            self.count(resource, "from_storage", provider.prefix(), started, opened.as_ref().err());
            match opened {
                Ok(opened) => return Ok(OpenedValue { stale: opened.stale || index > 0, ..opened }),
                Err(error) => errors.push(error),
            }
        }
        Err(SealError::combine(errors).unwrap_or_else(|| {
            let error = SealError::refused("no matching prefix found");
            self.count(resource, "from_storage", "unknown", started, Some(&error));
            error
        }))
    }

    fn count(
        &self,
        resource: &Resource,
        operation: &str,
        prefix: &str,
        began: Instant,
        error: Option<&SealError>,
    ) {
        if let Some(metrics) = &self.metrics {
            metrics.record_transformation(resource, operation, prefix, began.elapsed(), error);
        }
    }
}

#[cfg(test)]
mod tests;
