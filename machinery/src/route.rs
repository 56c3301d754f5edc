//! Compiled route: all data that a facade needs to serve one group version.
//!
//! Created by the compiler of the control service, sent over the configuration stream, stored in the facade's route table.

mod policy;

use std::sync::Arc;

pub use policy::{BackendPolicy, Ejection, Mirror};

use crate::gvk::GroupVersion;
use crate::pool::Pool;

/// Route compiled from one APIService.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Name of the APIService, `<version>.<group>`.
    pub name: String,
    /// Group version that the route serves.
    pub group_version: GroupVersion,
    /// `spec.groupPriorityMinimum`
    pub group_priority_minimum: i32,
    /// `spec.versionPriority`
    pub version_priority: i32,
    /// Backend of the requests, shared by all routes to it; `None` if the local chain (core, then API extensions) serves the
    /// group version.
    pub backend: Option<Arc<Backend>>,
    /// Available condition of the APIService.
    pub available: Availability,
    /// Revision of the APIService, Service or endpoints that last changed this route.
    pub revision: i64,
}

impl Route {
    /// True if the local chain serves the group version.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.backend.is_none()
    }

    /// Shares the backend with other routes that have an equal one.
    pub fn share_backend(&mut self, pool: &mut Pool<Backend>) {
        self.backend = self.backend.take().map(|backend| pool.share(backend));
    }
}

/// Availability of a backend, with the reason if requests must not be sent to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Availability {
    /// True if the condition is `True`.
    pub ok: bool,
    /// Reason of the condition, `""` before the first check.
    pub reason: String,
    /// Message of the condition.
    pub message: String,
    /// Time of the last transition, RFC 3339.
    pub since: String,
}

/// Backend API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Backend {
    /// `spec.service`
    pub service: ServiceReference,
    /// Addresses to dial, in order of preference within a family; empty if there is a `resolve_error`.
    pub targets: Vec<Target>,
    /// Reason why the Service does not resolve to an address.
    pub resolve_error: Option<ResolveError>,
    /// Name that the backend's certificate must have; also used as SNI.
    pub server_name: String,
    /// Trust settings for the backend's certificate.
    pub trust: Trust,
    /// True if HTTP/2 is offered (annotation `portico.dev/backend-protocol: h2`); otherwise HTTP/1.1.
    pub http2: bool,
    /// Load balancing and failure handling.
    pub policy: BackendPolicy,
}

/// `spec.service` of an APIService.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceReference {
    /// Namespace of the Service.
    pub namespace: String,
    /// Name of the Service.
    pub name: String,
    /// Port, 443 by default.
    pub port: u16,
}

/// Address to dial; `host` is a name (ExternalName, backend URLs) or an IP without brackets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// Host name or IP address.
    pub host: String,
    /// TCP port of the target.
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

/// Reason why a Service does not resolve; `reason` is that of the Available condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{message}")]
pub struct ResolveError {
    /// `ServiceNotFound`, `ServicePortError`, `EndpointsNotFound`, `MissingEndpoints`, ...
    pub reason: String,
    /// Human-readable message.
    pub message: String,
}

/// Trust settings for a backend's certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Trust {
    /// The system's roots: `caBundle` is empty.
    #[default]
    System,
    /// CA bundle with this SHA-256 (lower-case hex), sent once as a separate entry.
    Bundle(String),
    /// `insecureSkipTLSVerify`
    Insecure,
}
