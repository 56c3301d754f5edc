//! A compiled route: everything that a facade must know to serve one group version.
//!
//! Made by the control service's compiler, carried by the stream, held in the facade's route table.

mod policy;

use std::sync::Arc;

pub use policy::{BackendPolicy, Ejection, Mirror};

use crate::gvk::GroupVersion;
use crate::pool::Pool;

/// One APIService, compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The APIService's name, `<version>.<group>`.
    pub name: String,
    /// What it serves.
    pub group_version: GroupVersion,
    /// `spec.groupPriorityMinimum`
    pub group_priority_minimum: i32,
    /// `spec.versionPriority`
    pub version_priority: i32,
    /// Where requests go; absent means the local chain (core, then API extensions) serves them.
    /// Shared by all routes to the same one.
    pub backend: Option<Arc<Backend>>,
    /// The Available condition as it stands.
    pub available: Availability,
    /// The revision of the APIService, Service or endpoints that last changed this route.
    pub revision: i64,
}

impl Route {
    /// Whether the local chain serves it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.backend.is_none()
    }

    /// Takes the backend that other routes hold, if theirs is the same.
    pub fn share_backend(&mut self, pool: &mut Pool<Backend>) {
        self.backend = self.backend.take().map(|backend| pool.share(backend));
    }
}

/// Whether requests may be sent there, and if not, why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Availability {
    /// The condition is `True`.
    pub ok: bool,
    /// The condition's reason, `""` before the first verdict.
    pub reason: String,
    /// The condition's message.
    pub message: String,
    /// RFC 3339 time of the last transition.
    pub since: String,
}

/// A backend API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Backend {
    /// `spec.service`
    pub service: ServiceReference,
    /// Where to dial, in order of preference within a family; empty when `resolve_error` says why.
    pub targets: Vec<Target>,
    /// Why there is nowhere to dial.
    pub resolve_error: Option<ResolveError>,
    /// The name that the backend's certificate must carry, and SNI.
    pub server_name: String,
    /// What its certificate is checked against.
    pub trust: Trust,
    /// Whether HTTP/2 is offered to it (annotation `portico.dev/backend-protocol: h2`); http/1.1 otherwise.
    pub http2: bool,
    /// What becomes of requests that fail, and who gets them.
    pub policy: BackendPolicy,
}

/// `spec.service` of an APIService.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceReference {
    /// The Service's namespace.
    pub namespace: String,
    /// The Service's name.
    pub name: String,
    /// The port, 443 by default.
    pub port: u16,
}

/// One address to dial; `host` may be a name (ExternalName, backend URLs) or an IP without brackets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// Name or IP.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Why a Service does not resolve; `reason` is the Available condition's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{message}")]
pub struct ResolveError {
    /// `ServiceNotFound`, `ServicePortError`, `EndpointsNotFound`, `MissingEndpoints`, ...
    pub reason: String,
    /// For people.
    pub message: String,
}

/// What a backend's certificate is checked against.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Trust {
    /// The system's roots: `caBundle` is empty.
    #[default]
    System,
    /// The bundle with this SHA-256 (lower-case hex), sent once as its own entry.
    Bundle(String),
    /// `insecureSkipTLSVerify`
    Insecure,
}
