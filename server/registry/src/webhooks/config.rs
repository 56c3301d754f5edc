//! The client configuration of a webhook, as objects say it. Who writes one is told what is wrong with it elsewhere.

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
    /// 443 when it does not say.
    pub port: Option<u16>,
}
