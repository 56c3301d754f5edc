//! What makes two transports the same: who is dialled, how, and as whom.

use std::time::Duration;

use portico_machinery::route::{Backend, Target, Trust};

use crate::settings::Limits;

/// The client certificate that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Presents {
    /// None.
    Nothing,
    /// `--proxy-client-cert-file`
    FrontProxy,
    /// `--kubelet-client-certificate`
    Kubelet,
}

/// See the module. Equal ways share one transport.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Way {
    pub(crate) targets: Vec<Target>,
    /// What the certificate is checked against; nothing where TLS is not spoken.
    pub(crate) trust: Option<Trust>,
    pub(crate) presents: Presents,
    /// What the certificate must be for; empty: the host that is dialled.
    pub(crate) server_name: String,
    pub(crate) http2: bool,
    /// For resolving, connecting and the TLS handshake, all targets together.
    pub(crate) dial_timeout: Duration,
}

impl Way {
    /// To the backend of a route.
    pub(crate) fn to_backend(backend: &Backend, limits: &Limits) -> Self {
        Self {
            targets: backend.targets.clone(),
            trust: Some(backend.trust.clone()),
            presents: Presents::FrontProxy,
            server_name: backend.server_name.clone(),
            http2: backend.http2,
            dial_timeout: limits.dial_timeout,
        }
    }
}
