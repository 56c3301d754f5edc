//! What routing and probing need to know of an APIService.

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

/// Says that the auto-register controller manages an APIService: `onstart` or `true` (`AutoRegisterManagedLabel` upstream).
pub const AUTOMANAGED_LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";

/// A CA bundle under the hash of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// SHA-256 of the bytes, lower-case hex.
    pub hash: Arc<str>,
    /// The bytes as they stand in `spec.caBundle`: PEM, if their author was careful.
    pub pem: Arc<[u8]>,
}

/// A bundle that is there, shared by everybody who names the same bytes.
pub type CaBundle = Arc<Bundle>;

impl Bundle {
    /// The bundle of these bytes.
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

/// What APIServices say alike, held once: 5,000 of them with 50 CAs hold 50 bundles.
#[derive(Debug, Default)]
pub(super) struct Alike {
    bundles: Pool<Bundle>,
    backends: Pool<BackendFacts>,
}

/// An APIService, as far as routing and probing go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiServiceFacts {
    /// `metadata.name`
    pub name: Arc<str>,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.resourceVersion`; 0 of one that is not stored.
    pub revision: i64,
    /// A hash of all that people say (spec, labels, annotations): a status write does not change it, a touch does.
    pub fingerprint: u64,
    /// The label [`AUTOMANAGED_LABEL`].
    pub automanaged: Option<Box<str>>,
    /// `spec.group`, `spec.version`
    pub group_version: GroupVersion,
    /// `spec.groupPriorityMinimum`
    pub group_priority_minimum: i32,
    /// `spec.versionPriority`
    pub version_priority: i32,
    /// Present when `spec.service` is.
    pub backend: Option<Arc<BackendFacts>>,
    /// The Available condition; absent before the first verdict.
    pub available: Option<Availability>,
}

/// The part of an APIService that says where its backend is and how to trust it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BackendFacts {
    /// `spec.service`
    pub service: ServiceReference,
    /// `spec.caBundle`, when not empty.
    pub bundle: Option<CaBundle>,
    /// `spec.insecureSkipTLSVerify`
    pub insecure: bool,
    /// The annotation [`BACKEND_URLS`], read.
    pub urls: Option<Result<Vec<Target>, ResolveError>>,
    /// What the certificate must be for: `<service>.<namespace>.svc`, or what [`BACKEND_SERVER_NAME`] says.
    pub server_name: String,
    /// [`BACKEND_PROTOCOL`] says `h2`.
    pub http2: bool,
    /// What [`super::BACKEND_POLICY`] says.
    pub policy: BackendPolicy,
}

impl BackendFacts {
    /// What its certificate is checked against.
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
    /// Reads them off an APIService as it is stored (validated, defaulted).
    pub(super) fn of(object: &Object, alike: &mut Alike) -> Self {
        let spec = object.at(&["spec"]);
        let backend = spec.field("service").is_present().then(|| backend(object, &spec, &mut alike.bundles));
        let number = |field: &str| i32::try_from(spec.field(field).i64().unwrap_or(0)).unwrap_or(0);
        Self {
            name: object.name().into(),
            uid: object.uid().to_owned(),
            revision: object.resource_version().parse().unwrap_or(0),
            fingerprint: fingerprint(object),
            automanaged: object.label(AUTOMANAGED_LABEL).map(Into::into),
            group_version: GroupVersion::new(spec.field("group").str(), spec.field("version").str()),
            group_priority_minimum: number("groupPriorityMinimum"),
            version_priority: number("versionPriority"),
            backend: backend.map(|backend| alike.backends.share(backend)),
            available: available(object),
        }
    }

    /// Whether the condition is `True`.
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

fn fingerprint(object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.uid().hash(&mut hasher);
    for part in
        [object.at(&["spec"]), object.at(&["metadata", "labels"]), object.at(&["metadata", "annotations"])]
    {
        part.hash_into(&mut hasher);
    }
    hasher.finish()
}
