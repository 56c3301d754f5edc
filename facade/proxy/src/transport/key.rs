//! The key of a transport: which addresses are dialed, how, and with which client certificate.

use std::time::Duration;

use portico_machinery::route::{Backend, BackendPolicy, Mirror, ServiceReference, Target, Trust};

use crate::settings::Limits;

/// The client certificate that a backend gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClientCertificate {
    /// None.
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

/// See the module. Routes with equal keys share one transport.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct TransportKey {
    /// What metrics count it under; nothing for what is no backend of a route.
    pub(crate) service: Option<ServiceReference>,
    pub(crate) targets: Vec<Target>,
    /// What the certificate is checked against; nothing where TLS is not spoken.
    pub(crate) trust: Option<Trust>,
    pub(crate) client_certificate: ClientCertificate,
    /// What the certificate must be for; empty: the host that is dialed.
    pub(crate) server_name: String,
    pub(crate) http2: bool,
    /// For resolving, connecting and the TLS handshake, all targets together.
    pub(crate) dial_timeout: Duration,
    pub(crate) policy: BackendPolicy,
    /// The APIService whose requests are copied to there; its copies share nothing with other requests to the same addresses.
    pub(crate) mirror_of: Option<String>,
}

impl TransportKey {
    /// To the backend of a route.
    pub(crate) fn to_backend(backend: &Backend, limits: &Limits) -> Self {
        Self {
            service: Some(backend.service.clone()),
            targets: backend.targets.clone(),
            trust: Some(backend.trust.clone()),
            client_certificate: ClientCertificate::FrontProxy,
            server_name: backend.server_name.clone(),
            http2: backend.http2,
            dial_timeout: limits.dial_timeout,
            // What becomes of copies changes no connection.
            policy: BackendPolicy { mirror: None, ..backend.policy.clone() },
            mirror_of: None,
        }
    }

    /// To the mirror of this APIService's backend. Nobody is named, and no certificate shown, to somebody who is not verified.
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
