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
use super::object::{AES_GCM_KEY, EncryptedObject, Fingerprint, HKDF_SEED, shown, validate_key_id};
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
    pub bad: Duration,
}

impl Default for EnvelopeTimes {
    fn default() -> Self {
        Self { write_ttl: Duration::from_secs(180), bad: Duration::from_secs(3) }
    }
}

/// KMS v2 provider.
pub struct Envelope {
    name: String,
    prefix: String,
    service: Arc<dyn KeyService>,
    times: EnvelopeTimes,
    metrics: SealMetrics,
    writing: ArcSwapOption<Writing>,
    unwrapped: UnwrappedKeys,
    /// Locked during a probe, so that one probe and one new seed are in progress at a time. Contains the version first reported.
    probing: tokio::sync::Mutex<String>,
    /// Result of the last probe.
    health: Mutex<Result<(), String>>,
}

/// Current key for sealing.
struct Writing {
    key: Arc<DataKey>,
    /// Object without data.
    object: EncryptedObject,
    until: Mutex<Instant>,
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
            writing: ArcSwapOption::empty(),
            unwrapped: UnwrappedKeys::default(),
            probing: tokio::sync::Mutex::default(),
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
        let mut version = self.probing.lock().await;
        let result = match self.service.status().await {
            Ok(status) => self.accept(&status, &mut version).await,
            Err(error) => Err(format!(
                "failed to perform status section of the healthz check for KMS Provider {}, error: {error}",
                self.name
            )),
        };
        self.health.lock().clone_from(&result);
        result
    }

    /// Implements upstream's `isKMSv2ProviderHealthyAndMaybeRotateDEK`.
    async fn accept(&self, status: &KeyStatus, version: &mut String) -> Result<(), String> {
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
            Err(why) => {
                self.metrics.keys.invalid(&self.name, &status.key_id);
                errors.push(format!("got invalid KMSv2 KeyID hash {:?}: {why}", shown(&status.key_id)))
            }
            Ok(()) => {
                self.metrics.keys.named(&self.name, &status.key_id);
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
        let until = Instant::now() + self.times.write_ttl;
        let current = self.writing.load_full();
        if let Some(current) = current.as_ref().filter(|current| current.object.key_id == key_id) {
            *current.until.lock() = until;
            return Ok(());
        }
        let uid = uuid::Uuid::new_v4().to_string();
        let began = Instant::now();
        let made = self.generate(&uid).await;
        let (why, wrapped_by) = match made {
            Ok((key, object)) if object.key_id == key_id => {
                self.metrics.generations.observe(began.elapsed().as_secs_f64());
                self.keep(object.fingerprint(), Arc::clone(&key));
                self.writing.store(Some(Arc::new(Writing { key, object, until: Mutex::new(until) })));
                tracing::info!(provider = self.name, key_id = shown(key_id), "data encryption key generated");
                return Ok(());
            }
            Ok((_, object)) => ("<nil>".to_owned(), object.key_id),
            Err(error) => (error.to_string(), String::new()),
        };
        self.metrics.generation_failures.inc();
        Err(format!(
            "failed to rotate DEK uid={uid:?}, useSeed=true, errGen={why}, statusKeyIDHash={:?}, encryptKeyIDHash={:?}, \
             stateKeyIDHash={:?}",
            shown(key_id),
            shown(&wrapped_by),
            shown(current.as_ref().map_or("", |current| &current.object.key_id)),
        ))
    }

    /// Creates and wraps a new seed.
    async fn generate(&self, uid: &str) -> Result<(Arc<DataKey>, EncryptedObject), SealError> {
        let seed = Zeroizing::new(random::<SEED_BYTES>()?);
        let wrapped = self.service.encrypt(uid, &*seed).await;
        let wrapped = wrapped.map_err(|error| of_service("failed to encrypt DEK", &error))?;
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
        let writing = self.writing.load();
        let writing =
            writing.as_ref().ok_or_else(|| unavailable("got unexpected nil transformer".to_owned()))?;
        let (until, now) = (*writing.until.lock(), Instant::now());
        if now > until {
            return Err(unavailable(format!(
                "encryptedDEKSource with keyID hash {:?} expired at {} (current time is {})",
                shown(&writing.object.key_id),
                wall(now - until),
                wall(Duration::ZERO),
            )));
        }
        let data = writing.key.seal(plain, aad)?;
        self.metrics.keys.used("to_storage", &self.name, &writing.object.key_id);
        let object = EncryptedObject { encrypted_data: data, ..writing.object.clone() };
        out.reserve(object.encoded_len());
        // Writing to a Vec succeeds.
        object.encode(out).map_err(|error| SealError::refused(error.to_string()))
    }

    /// Opens a value. Returns true with it if writes use another key now.
    pub(super) async fn open(&self, sealed: &[u8], aad: &[u8]) -> Result<(Vec<u8>, bool), SealError> {
        let object = EncryptedObject::read(sealed)?;
        let key = self.key_of(&object).await?;
        self.metrics.keys.used("from_storage", &self.name, &object.key_id);
        let plain = key.open(&object.encrypted_data, aad)?;
        let writing = self.writing.load();
        let current = writing.as_ref().is_some_and(|writing| {
            writing.object.key_id == object.key_id
                && writing.object.encrypted_dek_source_type == object.encrypted_dek_source_type
        });
        Ok((plain, !current))
    }

    /// Returns the key of a value: cached, or unwrapped by the service, one call at a time.
    async fn key_of(&self, object: &EncryptedObject) -> Result<Arc<DataKey>, SealError> {
        let fingerprint = object.fingerprint();
        if let Some(key) = self.unwrapped.find(&fingerprint) {
            return Ok(key);
        }
        let mut asking = self.unwrapped.asking.lock().await;
        if let Some(key) = self.unwrapped.find(&fingerprint) {
            return Ok(key);
        }
        if let Some(error) = asking.failed_lately(&fingerprint, self.times.bad) {
            return Err(error);
        }
        self.metrics.cache_misses.inc();
        let uid = uuid::Uuid::new_v4().to_string();
        let unwrapped = self.service.decrypt(&uid, object.wrapped()).await;
        let made = match unwrapped {
            Err(error) => Err(of_service("failed to decrypt DEK", &error)),
            Ok(key) if object.encrypted_dek_source_type == AES_GCM_KEY => DataKey::from_key(&key),
            Ok(seed) => DataKey::from_seed(&seed),
        };
        match made {
            Ok(key) => Ok(self.keep(fingerprint, Arc::new(key))),
            Err(error) => {
                asking.failed(fingerprint, error.clone());
                Err(error)
            }
        }
    }

    fn keep(&self, fingerprint: Fingerprint, key: Arc<DataKey>) -> Arc<DataKey> {
        let (key, kept) = self.unwrapped.keep(fingerprint, key);
        self.metrics.keys.cached(&self.name, kept);
        key
    }
}

impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope").field("name", &self.name).finish_non_exhaustive()
    }
}

fn of_service(what: &str, error: &KeyServiceError) -> SealError {
    let (text, code) = (format!("{what}, error: {error}"), Some(error.code));
    match error.passing {
        true => SealError::Unavailable { text, code },
        false => SealError::Refused { text, code },
    }
}

/// Returns the wall-clock time this long ago in RFC 3339 format.
fn wall(ago: Duration) -> String {
    let since =
        SystemTime::now().checked_sub(ago).and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let seconds = since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
    portico_gostd::time::Time::unix(seconds, 0).rfc3339().unwrap_or_default()
}
