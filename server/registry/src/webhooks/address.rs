//! Address of a webhook, parsed from its client configuration.

use std::time::Duration;

use portico_kit::dial::Target;
use portico_machinery::route::ServiceReference;
use url::Url;

use super::ClientConfig;

/// Default port of webhooks.
const HTTPS: u16 = 443;

/// Destination of connections to a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Destination {
    /// Host and port.
    Url(Target),
    /// Service, resolved for each call.
    Service(ServiceReference),
}

/// Address of requests to a webhook.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) destination: Destination,
    /// Value of the `Host` header.
    pub(super) host: String,
    /// Path and query, in which upstream's clients send their timeout.
    pub(super) path: String,
    /// Complete URL, for messages.
    pub(super) url: String,
}

impl Destination {
    /// Name that the certificate must have.
    pub(super) fn server_name(&self) -> String {
        match self {
            Self::Url(target) => target.host.clone(),
            Self::Service(service) => format!("{}.{}.svc", service.name, service.namespace),
        }
    }

    /// Port of the destination.
    pub(super) fn port(&self) -> u16 {
        match self {
            Self::Url(target) => target.port,
            Self::Service(service) => service.port,
        }
    }
}

impl Address {
    /// Address of a configuration. Writes with an invalid configuration are refused, so stored ones are valid.
    pub(super) fn from_config(config: &ClientConfig, timeout: Duration) -> Result<Self, String> {
        let (destination, path) = match (&config.service, &config.url) {
            (Some(service), _) => {
                let reference = ServiceReference {
                    namespace: service.namespace.clone(),
                    name: service.name.clone(),
                    port: service.port.unwrap_or(HTTPS),
                };
                (Destination::Service(reference), service.path.clone().unwrap_or_default())
            }
            (None, Some(url)) => of_url(url)?,
            (None, None) => return Err("webhook configuration must have either service or URL".to_owned()),
        };
        let host = match &destination {
            Destination::Url(Target { host, port: HTTPS }) if !host.contains(':') => host.clone(),
            Destination::Url(target) => target.to_string(),
            Destination::Service(service) => format!("{}:{}", destination.server_name(), service.port),
        };
        let path =
            format!("/{}?timeout={}", path.trim_matches('/'), portico_gostd::time::format_duration(timeout));
        Ok(Self { url: format!("https://{host}{path}"), destination, host, path })
    }
}

fn of_url(url: &str) -> Result<(Destination, String), String> {
    let parsed = Url::parse(url).map_err(|error| format!("Unparsable URL: {error}"))?;
    let host = parsed.host_str().filter(|_| parsed.scheme() == "https");
    let host = host.ok_or_else(|| format!("Unparsable URL: {url:?} is not an https URL with a host"))?;
    let target = Target::new(host, parsed.port().unwrap_or(HTTPS));
    Ok((Destination::Url(target), parsed.path().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(json: &str) -> Result<Address, String> {
        Address::from_config(&serde_json::from_str(json).unwrap(), Duration::from_secs(30))
    }

    #[test]
    fn a_webhook_has_a_url_or_a_service() {
        let table = [
            (
                r#"{"url":"https://hook.example/convert"}"#,
                "https://hook.example/convert?timeout=30s",
                "hook.example",
            ),
            (r#"{"url":"https://127.0.0.1:8443"}"#, "https://127.0.0.1:8443/?timeout=30s", "127.0.0.1"),
            (r#"{"url":"https://[::1]:1/a/b/"}"#, "https://[::1]:1/a/b?timeout=30s", "::1"),
            (r#"{"service":{"namespace":"n","name":"s"}}"#, "https://s.n.svc:443/?timeout=30s", "s.n.svc"),
            (
                r#"{"service":{"namespace":"n","name":"s","path":"/convert","port":9443}}"#,
                "https://s.n.svc:9443/convert?timeout=30s",
                "s.n.svc",
            ),
        ];
        for (config, url, server_name) in table {
            let address = address(config).unwrap();
            assert_eq!(
                (address.url.as_str(), address.destination.server_name().as_str()),
                (url, server_name)
            );
        }
    }

    #[test]
    fn a_configuration_without_an_address_is_refused() {
        for config in ["{}", r#"{"url":"http://a/b"}"#, r#"{"url":"nonsense"}"#] {
            assert!(address(config).is_err(), "{config}");
        }
    }
}
