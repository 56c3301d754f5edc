//! The client configuration of a webhook, as objects contain it. The validation of writes reports its errors.

use portico_machinery::route::Target;
use serde::Deserialize;

/// Where a webhook is: exactly one of a URL and a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientConfig {
    /// `https://…`.
    pub url: Option<String>,
    /// A Service of this cluster.
    pub service: Option<WebhookService>,
    /// PEM in base64; the system's roots when empty.
    pub ca_bundle: String,
    /// Backends that are dialed instead of the Service's addresses; the Service need not exist then.
    #[serde(skip)]
    pub backends: Option<Backends>,
    /// The name that its certificate must have, where that is neither the URL's host nor the Service.
    #[serde(skip)]
    pub server_name: Option<String>,
}

/// Addresses that annotations name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backends {
    /// The addresses.
    pub targets: Vec<Target>,
    /// The name that their certificates must have, where that is not the Service's.
    pub server_name: Option<String>,
}

/// A path on a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WebhookService {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// A path, with a leading slash.
    pub path: Option<String>,
    /// 443 when it is not set.
    pub port: Option<u16>,
}
