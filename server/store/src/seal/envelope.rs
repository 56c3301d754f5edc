//! KMS v2: values are sealed with keys derived from a seed, which a key service has wrapped (upstream's `kmsv2` package).
//!
//! One seed serves for as long as the service's key id stays. [`Envelope::probe`] asks for the id and makes a new seed when it
//! has changed: one at a time, and never while a value is sealed. Seeds that were unwrapped are kept, so what was read once
//! stays readable while the service is away; sealing goes on for [`EnvelopeTimes::write_ttl`] after the last good probe.

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

/// Versions of the API that upstream takes for the same.
const VERSIONS: [&str; 2] = ["v2", "v2beta1"];

/// How long what is known of a key service counts; the defaults are upstream's.
#[derive(Clone, Copy, Debug)]
pub struct EnvelopeTimes {
    /// How long values are sealed after the last good probe.
    pub write_ttl: Duration,
    /// How long a refusal to unwrap a key is remembered.
    pub bad: Duration,
}

impl Default for EnvelopeTimes {
    fn default() -> Self {
        Self { write_ttl: Duration::from_secs(180), bad: Duration::from_secs(3) }
    }
}

/// A KMS v2 provider.
pub struct Envelope {
    name: String,
    prefix: String,
    service: Arc<dyn KeyService>,
    times: EnvelopeTimes,
    metrics: SealMetrics,
    writing: ArcSwapOption<Writing>,
    unwrapped: UnwrappedKeys,
    /// Held while the service is asked: one probe, and so one new seed, at a time. The version first reported.
    probing: tokio::sync::Mutex<String>,
    /// What the last probe came to.
    health: Mutex<Result<(), String>>,
}

/// What values are sealed with now.
struct Writing {
    key: Arc<DataKey>,
    /// Without data.
    object: EncryptedObject,
    until: Mutex<Instant>,
}

impl Envelope {
    /// Seals nothing before a probe was good.
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

    /// The provider's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// What the last [`Envelope::probe`] came to.
    ///
    /// # Errors
    /// What was wrong with the service.
    pub fn health(&self) -> Result<(), String> {
        self.health.lock().clone()
    }

    /// Asks the service how it is, and makes a new seed if its key has changed.
    ///
    /// # Errors
    /// What is wrong with it, in upstream's words.
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

    /// Upstream's `isKMSv2ProviderHealthyAndMaybeRotateDEK`.
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

    /// Upstream's `rotateDEKOnKeyIDChange`: on any failure what is there goes on until it expires.
    async fn rotate(&self, key_id: &str) -> Result<(), String> {
        // Before the call: the time is an upper bound.
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

    /// A new seed, wrapped.
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
        // A Vec grows.
        object.encode(out).map_err(|error| SealError::refused(error.to_string()))
    }

    /// The value, and whether it is sealed with another key than values are now.
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

    /// The key that a value was sealed with: known, or unwrapped by the service, which is asked for one at a time.
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

/// The time of day so long ago, in seconds of Unix time.
fn wall(ago: Duration) -> String {
    let since =
        SystemTime::now().checked_sub(ago).and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let seconds = since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
    portico_gostd::time::Time::unix(seconds, 0).rfc3339().unwrap_or_default()
}
