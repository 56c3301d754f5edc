//! KMS v2: values are sealed with keys derived from a seed that a key service has wrapped (upstream's `kmsv2` package).
//!
//! A seed is used until the key ID of the service changes. [`Envelope::probe`] queries the ID and creates a new seed
//! after a change: one probe at a time, and never during the sealing of a value. Unwrapped seeds are cached, so values
//! that were read once stay readable while the service is unavailable. Sealing continues for [`EnvelopeTimes::write_ttl`]
//! after the last successful probe.

mod data_key;
mod unwrapped;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use prost::Message;
use zeroize::Zeroizing;

use super::cipher::random;
use super::error::SealError;
use super::key_service::{KeyService, KeyServiceError, KeyStatus};
use super::metrics::SealMetrics;
use super::object::{AES_GCM_KEY, EncryptedObject, Fingerprint, HKDF_SEED, key_id_digest, validate_key_id};
use data_key::{DataKey, SEED_BYTES};
use unwrapped::UnwrappedKeys;

/// API versions that upstream treats as equal.
const VERSIONS: [&str; 2] = ["v2", "v2beta1"];

/// Validity of the cached state of a key service. The defaults are upstream's.
#[derive(Clone, Copy, Debug)]
pub struct EnvelopeTimes {
    /// Time for which values are sealed after the last successful probe.
    pub write_ttl: Duration,
    /// Time for which a refusal to unwrap a key is cached.
    pub refusal_ttl: Duration,
}

impl Default for EnvelopeTimes {
    fn default() -> Self {
        Self { write_ttl: Duration::from_secs(180), refusal_ttl: Duration::from_secs(3) }
    }
}

/// KMS v2 provider.
pub struct Envelope {
    name: String,
    prefix: String,
    service: Arc<dyn KeyService>,
    times: EnvelopeTimes,
    metrics: SealMetrics,
    write_key: ArcSwapOption<WriteKey>,
    unwrapped: UnwrappedKeys,
    /// Locked during a probe, so that one probe and one new seed are in progress at a time. Contains the version first reported.
    probe_lock: tokio::sync::Mutex<String>,
    /// Result of the last probe.
    health: Mutex<Result<(), String>>,
}

/// Current key for sealing.
struct WriteKey {
    key: Arc<DataKey>,
    /// Object without data.
    object: EncryptedObject,
    valid_until: Mutex<Instant>,
}

impl Envelope {
    /// Creates a provider that seals no values until the first successful probe.
    #[must_use]
    pub fn new(
        name: &str,
        service: Arc<dyn KeyService>,
        times: EnvelopeTimes,
        metrics: SealMetrics,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            prefix: format!("k8s:enc:kms:v2:{name}:"),
            service,
            times,
            metrics,
            write_key: ArcSwapOption::empty(),
            unwrapped: UnwrappedKeys::default(),
            probe_lock: tokio::sync::Mutex::default(),
            health: Mutex::new(Err(format!("kmsv2 Provider {name} has not been checked yet"))),
        })
    }

    /// Returns the name of the provider.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the result of the last [`Envelope::probe`].
    ///
    /// # Errors
    /// The problem of the service.
    pub fn health(&self) -> Result<(), String> {
        self.health.lock().clone()
    }

    /// Queries the status of the service, and creates a new seed if its key has changed.
    ///
    /// # Errors
    /// The problem of the service, as upstream words it.
    pub async fn probe(&self) -> Result<(), String> {
        let mut version = self.probe_lock.lock().await;
        let result = match self.service.status().await {
            Ok(status) => self.apply_status(&status, &mut version).await,
            Err(error) => Err(format!(
                "failed to perform status section of the healthz check for KMS Provider {}, error: {error}",
                self.name
            )),
        };
        self.health.lock().clone_from(&result);
        result
    }

    /// Implements upstream's `isKMSv2ProviderHealthyAndMaybeRotateDEK`.
    async fn apply_status(&self, status: &KeyStatus, version: &mut String) -> Result<(), String> {
        let mut errors = Vec::new();
        if status.healthz != "ok" {
            errors.push(format!("got unexpected healthz status: {}", status.healthz));
        }
        if !VERSIONS.contains(&&*status.version) {
            errors.push(format!("expected KMSv2 API version v2, got {}", status.version));
        } else if version.is_empty() {
            version.clone_from(&status.version);
        } else if *version != status.version {
            errors.push(format!(
                "KMSv2 API version should not change after the initial status response version {version}, got {}",
                status.version
            ));
        }
        match validate_key_id(&status.key_id) {
            Err(reason) => {
                self.metrics.keys.record_invalid(&self.name, &status.key_id);
                errors.push(format!(
                    "got invalid KMSv2 KeyID hash {:?}: {reason}",
                    key_id_digest(&status.key_id)
                ))
            }
            Ok(()) => {
                self.metrics.keys.record_status(&self.name, &status.key_id);
                errors.extend(self.rotate(&status.key_id).await.err());
            }
        }
        let text = match &errors[..] {
            [] => return Ok(()),
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        Err(format!("kmsv2 Provider {} is not healthy, error: {text}", self.name))
    }

    /// Implements upstream's `rotateDEKOnKeyIDChange`: after a failure the current key is used until it expires.
    async fn rotate(&self, key_id: &str) -> Result<(), String> {
        // Computed before the call, so that the time is an upper bound.
        let valid_until = Instant::now() + self.times.write_ttl;
        let current = self.write_key.load_full();
        if let Some(current) = current.as_ref().filter(|current| current.object.key_id == key_id) {
            *current.valid_until.lock() = valid_until;
            return Ok(());
        }
        let uid = uuid::Uuid::new_v4().to_string();
        let started = Instant::now();
        let generated = self.generate(&uid).await;
        let (error_text, wrapped_by) = match generated {
            Ok((key, object)) if object.key_id == key_id => {
                self.metrics.generations.observe(started.elapsed().as_secs_f64());
                self.cache_key(object.fingerprint(), Arc::clone(&key));
                self.write_key.store(Some(Arc::new(WriteKey {
                    key,
                    object,
                    valid_until: Mutex::new(valid_until),
                })));
                tracing::info!(
                    provider = self.name,
                    key_id = key_id_digest(key_id),
                    "data encryption key generated"
                );
                return Ok(());
            }
            Ok((_, object)) => ("<nil>".to_owned(), object.key_id),
            Err(error) => (error.to_string(), String::new()),
        };
        self.metrics.generation_failures.inc();
        Err(format!(
            "failed to rotate DEK uid={uid:?}, useSeed=true, errGen={error_text}, statusKeyIDHash={:?}, encryptKeyIDHash={:?}, \
             stateKeyIDHash={:?}",
            key_id_digest(key_id),
            key_id_digest(&wrapped_by),
            key_id_digest(current.as_ref().map_or("", |current| &current.object.key_id)),
        ))
    }

    /// Creates and wraps a new seed.
    async fn generate(&self, uid: &str) -> Result<(Arc<DataKey>, EncryptedObject), SealError> {
        let seed = Zeroizing::new(random::<SEED_BYTES>()?);
        let wrapped = self.service.encrypt(uid, &*seed).await;
        let wrapped = wrapped.map_err(|error| service_error("failed to encrypt DEK", &error))?;
        let object = EncryptedObject {
            encrypted_data: Vec::new(),
            key_id: wrapped.key_id,
            encrypted_dek_source: wrapped.ciphertext,
            annotations: wrapped.annotations,
            encrypted_dek_source_type: HKDF_SEED,
        };
        object.validate()?;
        Ok((Arc::new(DataKey::from_seed(&*seed)?), object))
    }

    /// Appends the sealed value to `out`.
    pub(super) fn seal(&self, plain: &[u8], aad: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        let unavailable = |text: String| SealError::Unavailable { text, code: None };
        let write_key = self.write_key.load();
        let write_key =
            write_key.as_ref().ok_or_else(|| unavailable("got unexpected nil transformer".to_owned()))?;
        let (valid_until, now) = (*write_key.valid_until.lock(), Instant::now());
        if now > valid_until {
            return Err(unavailable(format!(
                "encryptedDEKSource with keyID hash {:?} expired at {} (current time is {})",
                key_id_digest(&write_key.object.key_id),
                wall_time(now - valid_until),
                wall_time(Duration::ZERO),
            )));
        }
        let data = write_key.key.seal(plain, aad)?;
        self.metrics.keys.record_use("to_storage", &self.name, &write_key.object.key_id);
        let object = EncryptedObject { encrypted_data: data, ..write_key.object.clone() };
        out.reserve(object.encoded_len());
        // Writing to a Vec succeeds.
        object.encode(out).map_err(|error| SealError::refused(error.to_string()))
    }

    /// Opens a value. Also returns true if writes use another key now.
    pub(super) async fn open(&self, sealed: &[u8], aad: &[u8]) -> Result<(Vec<u8>, bool), SealError> {
        let object = EncryptedObject::read(sealed)?;
        let key = self.key_of(&object).await?;
        self.metrics.keys.record_use("from_storage", &self.name, &object.key_id);
        let plain = key.open(&object.encrypted_data, aad)?;
        let write_key = self.write_key.load();
        let is_current = write_key.as_ref().is_some_and(|write_key| {
            write_key.object.key_id == object.key_id
                && write_key.object.encrypted_dek_source_type == object.encrypted_dek_source_type
        });
        Ok((plain, !is_current))
    }

    /// Returns the key of a value: cached, or unwrapped by the service, one call at a time.
    async fn key_of(&self, object: &EncryptedObject) -> Result<Arc<DataKey>, SealError> {
        let fingerprint = object.fingerprint();
        if let Some(key) = self.unwrapped.find(&fingerprint) {
            return Ok(key);
        }
        let mut refusals = self.unwrapped.refusals.lock().await;
        if let Some(key) = self.unwrapped.find(&fingerprint) {
            return Ok(key);
        }
        if let Some(error) = refusals.recent_failure(&fingerprint, self.times.refusal_ttl) {
            return Err(error);
        }
        self.metrics.cache_misses.inc();
        let uid = uuid::Uuid::new_v4().to_string();
        let unwrapped = self.service.decrypt(&uid, object.wrapped_key()).await;
        let data_key = match unwrapped {
            Err(error) => Err(service_error("failed to decrypt DEK", &error)),
            Ok(key) if object.encrypted_dek_source_type == AES_GCM_KEY => DataKey::from_key(&key),
            Ok(seed) => DataKey::from_seed(&seed),
        };
        match data_key {
            Ok(key) => Ok(self.cache_key(fingerprint, Arc::new(key))),
            Err(error) => {
                refusals.insert(fingerprint, error.clone());
                Err(error)
            }
        }
    }

    fn cache_key(&self, fingerprint: Fingerprint, key: Arc<DataKey>) -> Arc<DataKey> {
        let (key, cached_keys) = self.unwrapped.insert(fingerprint, key);
        self.metrics.keys.set_cached_keys(&self.name, cached_keys);
        key
    }
}

impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope").field("name", &self.name).finish_non_exhaustive()
    }
}

fn service_error(operation: &str, error: &KeyServiceError) -> SealError {
    let (text, code) = (format!("{operation}, error: {error}"), Some(error.code));
    match error.is_unreachable {
        true => SealError::Unavailable { text, code },
        false => SealError::Refused { text, code },
    }
}

/// Returns the wall-clock time this long ago in RFC 3339 format.
fn wall_time(ago: Duration) -> String {
    let since_epoch =
        SystemTime::now().checked_sub(ago).and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let seconds = since_epoch.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
    portico_gostd::time::Time::unix(seconds, 0).rfc3339().unwrap_or_default()
}
