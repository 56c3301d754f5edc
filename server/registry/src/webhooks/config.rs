//! Client configuration of a webhook, as stored in objects. The validation of writes reports its errors.

use portico_machinery::route::Target;
use serde::Deserialize;

/// Address of a webhook: exactly one of a URL and a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientConfig {
    /// URL, starting with `https://`.
    pub url: Option<String>,
    /// Service in this cluster.
    pub service: Option<WebhookService>,
    /// CA certificates as PEM in base64; empty for the system's roots.
    pub ca_bundle: String,
    /// Backends that are dialed instead of the Service's addresses; the Service need not exist then.
    #[serde(skip)]
    pub backends: Option<Backends>,
    /// Name that the certificate must have, if it differs from the URL's host or the Service's name.
    #[serde(skip)]
    pub server_name: Option<String>,
}

/// Backends in annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backends {
    /// Addresses of the backends.
    pub targets: Vec<Target>,
    /// Name that the certificates must have, if it differs from the Service's name.
    pub server_name: Option<String>,
}

/// Service and path of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WebhookService {
    /// Namespace of the Service.
    pub namespace: String,
    /// Name of the Service.
    pub name: String,
    /// Path with a leading slash, if any.
    pub path: Option<String>,
    /// Port; 443 if it is absent.
    pub port: Option<u16>,
}
