//! Key of a transport: the addresses to dial, the way to dial them, and the client certificate.

use std::time::Duration;

use portico_machinery::route::{Backend, BackendPolicy, Mirror, ServiceReference, Target, Trust};

use crate::settings::Limits;

/// The client certificate that a backend gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClientCertificate {
    /// No client certificate.
    None,
    /// `--proxy-client-cert-file`
    FrontProxy,
    /// `--kubelet-client-certificate`
    Kubelet,
}

impl ClientCertificate {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::FrontProxy => "front-proxy",
            Self::Kubelet => "kubelet",
        }
    }
}

/// Key of a transport. Routes with equal keys share one transport.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct TransportKey {
    /// Service under which metrics count the transport; `None` unless a route leads to it.
    pub(crate) service: Option<ServiceReference>,
    pub(crate) targets: Vec<Target>,
    /// Trust that verifies the server certificate; `None` for connections without TLS.
    pub(crate) trust: Option<Trust>,
    pub(crate) client_certificate: ClientCertificate,
    /// Name that the server certificate must be valid for; if empty, the dialed host.
    pub(crate) server_name: String,
    pub(crate) http2: bool,
    /// Time for resolving, connecting and the TLS handshake, all targets together.
    pub(crate) dial_timeout: Duration,
    pub(crate) policy: BackendPolicy,
    /// The APIService whose requests are copied to this target; copies share no connections with other
    /// requests to the same addresses.
    pub(crate) mirror_of: Option<String>,
}

impl TransportKey {
    /// Returns the key for the backend of a route.
    pub(crate) fn to_backend(backend: &Backend, limits: &Limits) -> Self {
        Self {
            service: Some(backend.service.clone()),
            targets: backend.targets.clone(),
            trust: Some(backend.trust.clone()),
            client_certificate: ClientCertificate::FrontProxy,
            server_name: backend.server_name.clone(),
            http2: backend.http2,
            dial_timeout: limits.dial_timeout,
            // The mirror policy does not affect connections.
            policy: BackendPolicy { mirror: None, ..backend.policy.clone() },
            mirror_of: None,
        }
    }

    /// Returns the key for the mirror of this APIService's backend. An unverified mirror gets neither
    /// identity nor client certificate.
    pub(crate) fn to_mirror(api_service: &str, backend: &Backend, mirror: &Mirror, limits: &Limits) -> Self {
        let verified = backend.trust != Trust::Insecure;
        let max_connections = Some(limits.max_mirrored_requests);
        Self {
            service: None,
            targets: mirror.targets.clone(),
            trust: Some(backend.trust.clone()),
            client_certificate: if verified {
                ClientCertificate::FrontProxy
            } else {
                ClientCertificate::None
            },
            server_name: mirror.server_name.clone(),
            http2: backend.http2,
            dial_timeout: limits.dial_timeout,
            policy: BackendPolicy { max_connections, ..BackendPolicy::default() },
            mirror_of: Some(api_service.to_owned()),
        }
    }
}
