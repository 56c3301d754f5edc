//! Facts of an APIService for routing and probing.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{
    BACKEND_PROTOCOL, BACKEND_SERVER_NAME, BACKEND_URLS, FAILED_DISCOVERY_CHECK, backend_policy, backend_urls,
};
use crate::digest::sha256_hex;
use crate::gvk::GroupVersion;
use crate::object::{Cursor, Object};
use crate::pool::Pool;
use crate::route::{Availability, BackendPolicy, ResolveError, ServiceReference, Target, Trust};

/// Label of APIServices that the auto-register controller manages: `onstart` or `true` (`AutoRegisterManagedLabel` upstream).
pub const AUTOMANAGED_LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";

/// CA bundle with the hash of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// SHA-256 of the bytes, lower-case hex.
    pub hash: Arc<str>,
    /// Bytes of `spec.caBundle`: usually PEM, but not validated.
    pub pem: Arc<[u8]>,
}

/// CA bundle, shared by all APIServices with the same bytes.
pub type CaBundle = Arc<Bundle>;

impl Bundle {
    /// Creates a bundle of these bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { hash: sha256_hex(&bytes).into(), pem: bytes.into() }
    }
}

impl Hash for Bundle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

/// Interned values of APIServices: 5,000 of them with 50 CAs store 50 bundles.
#[derive(Debug, Default)]
pub(super) struct SharedValues {
    bundles: Pool<Bundle>,
    backends: Pool<BackendFacts>,
}

/// Facts of an APIService for routing and probing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiServiceFacts {
    /// `metadata.name`
    pub name: Arc<str>,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.resourceVersion`; 0 if the object is not stored.
    pub revision: i64,
    /// Hash of the user-defined parts (spec, labels, annotations): status updates do not change it, but other updates do.
    pub fingerprint: u64,
    /// Value of the label [`AUTOMANAGED_LABEL`].
    pub automanaged: Option<Box<str>>,
    /// `spec.group` and `spec.version`.
    pub group_version: GroupVersion,
    /// `spec.groupPriorityMinimum`
    pub group_priority_minimum: i32,
    /// `spec.versionPriority`
    pub version_priority: i32,
    /// Backend; `None` without `spec.service`.
    pub backend: Option<Arc<BackendFacts>>,
    /// Available condition; `None` before the first check.
    pub available: Option<Availability>,
}

/// Facts of a backend: address and TLS verification.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BackendFacts {
    /// `spec.service`
    pub service: ServiceReference,
    /// `spec.caBundle`, if not empty.
    pub bundle: Option<CaBundle>,
    /// `spec.insecureSkipTLSVerify`
    pub insecure: bool,
    /// Parsed annotation [`BACKEND_URLS`].
    pub urls: Option<Result<Vec<Target>, ResolveError>>,
    /// Expected name in the certificate: `<service>.<namespace>.svc`, or the value of [`BACKEND_SERVER_NAME`].
    pub server_name: String,
    /// True if [`BACKEND_PROTOCOL`] is `h2`.
    pub http2: bool,
    /// Policy from the annotations [`super::BACKEND_POLICY`].
    pub policy: BackendPolicy,
}

impl BackendFacts {
    /// Returns the trust settings for the certificate.
    #[must_use]
    pub fn trust(&self) -> Trust {
        match (&self.bundle, self.insecure) {
            (_, true) => Trust::Insecure,
            (Some(bundle), false) => Trust::Bundle(bundle.hash.to_string()),
            (None, false) => Trust::System,
        }
    }
}

impl ApiServiceFacts {
    /// Parses the facts of a stored (validated, defaulted) APIService.
    pub(super) fn of(object: &Object, alike: &mut SharedValues) -> Self {
        let spec = object.at(&["spec"]);
        let backend = spec.field("service").is_present().then(|| backend(object, &spec, &mut alike.bundles));
        let number = |field: &str| i32::try_from(spec.field(field).i64().unwrap_or(0)).unwrap_or(0);
        Self {
            name: object.name().into(),
            uid: object.uid().to_owned(),
            revision: object.resource_version().parse().unwrap_or(0),
            fingerprint: content_hash(object),
            automanaged: object.label(AUTOMANAGED_LABEL).map(Into::into),
            group_version: GroupVersion::new(spec.field("group").str(), spec.field("version").str()),
            group_priority_minimum: number("groupPriorityMinimum"),
            version_priority: number("versionPriority"),
            backend: backend.map(|backend| alike.backends.share(backend)),
            available: available(object),
        }
    }

    /// True if the Available condition is `True`.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.available.as_ref().is_some_and(|a| a.ok)
    }
}

fn backend(object: &Object, spec: &Cursor<'_>, bundles: &mut Pool<Bundle>) -> BackendFacts {
    let service = spec.field("service");
    let service = ServiceReference {
        namespace: service.field("namespace").str().to_owned(),
        name: service.field("name").str().to_owned(),
        port: service.field("port").i64().and_then(|p| u16::try_from(p).ok()).unwrap_or(443),
    };
    let bytes = STANDARD.decode(spec.field("caBundle").str()).unwrap_or_default();
    let server_name = object.annotation(BACKEND_SERVER_NAME).filter(|name| !name.is_empty());
    BackendFacts {
        bundle: (!bytes.is_empty()).then(|| bundles.share(Bundle::new(bytes))),
        insecure: spec.field("insecureSkipTLSVerify").bool(),
        urls: object.annotation(BACKEND_URLS).map(|text| {
            backend_urls(text).map_err(|error| ResolveError {
                reason: FAILED_DISCOVERY_CHECK.to_owned(),
                message: format!("annotation {BACKEND_URLS}: {error}"),
            })
        }),
        server_name: server_name
            .map_or_else(|| format!("{}.{}.svc", service.name, service.namespace), str::to_owned),
        http2: object.annotation(BACKEND_PROTOCOL) == Some("h2"),
        policy: backend_policy(object),
        service,
    }
}

fn available(object: &Object) -> Option<Availability> {
    let condition =
        object.at(&["status", "conditions"]).items().find(|c| c.field("type").str() == "Available")?;
    let text = |field: &str| condition.field(field).str().to_owned();
    Some(Availability {
        ok: condition.field("status").str() == "True",
        reason: text("reason"),
        message: text("message"),
        since: text("lastTransitionTime"),
    })
}

fn content_hash(object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.uid().hash(&mut hasher);
    for part in
        [object.at(&["spec"]), object.at(&["metadata", "labels"]), object.at(&["metadata", "annotations"])]
    {
        part.hash_into(&mut hasher);
    }
    hasher.finish()
}
