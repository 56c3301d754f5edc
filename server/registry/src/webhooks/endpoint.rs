//! Endpoint of a webhook, computed once from its client configuration.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_kit::pki::{self, CertInfo};
use portico_machinery::route::Target;

use super::ClientConfig;
use super::address::Address;
use super::credentials::{WebhookUser, WebhookUsers};
use super::transport::{Peer, PeerIdentity, TransportKey};

/// Address, verification and timeout of a webhook. Cheap to clone.
#[derive(Clone)]
pub struct WebhookEndpoint(Result<Arc<Endpoint>, String>);

/// Endpoint of a valid configuration.
pub(super) struct Endpoint {
    pub(super) address: Address,
    /// Host by which users are chosen.
    host: String,
    /// Addresses in the configuration itself.
    pub(super) backends: Option<Vec<Target>>,
    pub(super) timeout: Duration,
    peer: Peer,
}

impl WebhookEndpoint {
    /// Endpoint of a configuration; an invalid one fails when it is called. `timeout` covers the whole call including waiting.
    #[must_use]
    pub fn new(config: &ClientConfig, timeout: Duration) -> Self {
        Self(
            Address::from_config(config, timeout)
                .map(|address| Arc::new(Endpoint::new(config, address, timeout))),
        )
    }

    /// Earliest expiry of a certificate in the CA bundle, in Unix seconds; `None` if the bundle is empty or invalid.
    #[must_use]
    pub fn ca_expiry(&self) -> Option<i64> {
        let pem = STANDARD.decode(self.endpoint().ok()?.peer.ca_bundle()).ok()?;
        let certificates = pki::parse_certs("caBundle", &pem).ok()?;
        let ends = certificates.iter().filter_map(|der| CertInfo::parse(der).ok());
        ends.map(|info| info.not_after).min()
    }

    /// Endpoint, if the configuration is valid.
    ///
    /// # Errors
    /// Message about the invalid configuration.
    pub(super) fn endpoint(&self) -> Result<&Endpoint, String> {
        self.0.as_deref().map_err(Clone::clone)
    }
}

impl fmt::Debug for WebhookEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(endpoint) => f.write_str(&endpoint.address.url),
            Err(reason) => f.write_str(reason),
        }
    }
}

impl Endpoint {
    fn new(config: &ClientConfig, address: Address, timeout: Duration) -> Self {
        let backends = config.backends.as_ref().filter(|_| config.service.is_some());
        let peer = Peer::new(PeerIdentity {
            destination: address.destination.clone(),
            ca_bundle: config.ca_bundle.clone(),
            server_name: config.server_name.clone().or_else(|| backends?.server_name.clone()),
            targets: backends.map(|backends| backends.targets.clone()).unwrap_or_default(),
        });
        let backends = backends.map(|backends| backends.targets.clone());
        Self { host: address.destination.server_name(), address, backends, timeout, peer }
    }

    /// User for calls. `None` if the configuration contains addresses: its author could otherwise receive credentials that are
    /// meant for the Service.
    pub(super) fn user<'u>(&self, users: &'u WebhookUsers) -> Option<&'u Arc<WebhookUser>> {
        if self.backends.is_some() {
            return None;
        }
        users.for_host(&self.host, self.address.destination.port())
    }

    /// Key of the transport.
    pub(super) fn key(&self, user: Option<&Arc<WebhookUser>>) -> TransportKey {
        TransportKey { peer: self.peer.clone(), user: user.map_or(0, |user| Arc::as_ptr(user) as usize) }
    }
}
