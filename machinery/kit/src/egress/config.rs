//! `EgressSelectorConfiguration` with upstream's validation.

use std::path::{Path, PathBuf};

use http::Uri;
use serde::Deserialize;

/// Error in a configuration. Each message names the place in the file.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The file cannot be read.
    #[error("{}: {}", path.display(), portico_gostd::os::error_text(source))]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The file is not the expected YAML, or has unknown or repeated fields.
    #[error("egress selector configuration: {0}")]
    Yaml(String),
    /// A field has an invalid value.
    #[error("egress selector configuration: {field}: {reason}")]
    Invalid {
        /// Path of the field.
        field: String,
        /// Reason of the rejection.
        reason: String,
    },
}

/// Validated configuration, with at most one selection per name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressConfig {
    selections: Vec<(String, Selection)>,
}

/// Egress of one class of traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// `Direct` or `HTTPConnect`.
    pub protocol: Protocol,
}

/// Protocol of a selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protocol {
    /// Direct connection without a proxy.
    Direct,
    /// HTTP CONNECT over the given transport.
    HttpConnect(Transport),
}

/// Transport of the connection to the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// TCP, with TLS if the URL is https.
    Tcp {
        /// Host of the proxy.
        host: String,
        /// Port of the proxy.
        port: u16,
        /// Files of the TLS connection, or `None` if the URL is http.
        tls: Option<ProxyTls>,
    },
    /// A Unix domain socket.
    Uds(PathBuf),
}

/// Files of the TLS connection to the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyTls {
    /// CA bundle, or `None` for the system's roots.
    pub ca_bundle: Option<PathBuf>,
    /// Client certificate.
    pub client_cert: PathBuf,
    /// Client key.
    pub client_key: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    egress_selections: Vec<FileSelection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSelection {
    name: String,
    connection: FileConnection,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct FileConnection {
    proxy_protocol: String,
    transport: Option<FileTransport>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTransport {
    tcp: Option<FileTcp>,
    uds: Option<FileUds>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct FileTcp {
    url: String,
    tls_config: Option<FileTls>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct FileUds {
    uds_name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct FileTls {
    ca_bundle: Option<String>,
    client_key: Option<String>,
    client_cert: Option<String>,
}

impl EgressConfig {
    /// Reads and validates a file.
    pub fn load(path: &Path) -> Result<Self, EgressError> {
        let text = crate::config_file::read_text(path)
            .map_err(|source| EgressError::File { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// Validates a YAML (or JSON) text. Files that it names must exist.
    pub fn parse(text: &str) -> Result<Self, EgressError> {
        let file: File =
            serde_saphyr::from_str(text).map_err(|error| EgressError::Yaml(error.to_string()))?;
        if !matches!(file.api_version.as_str(), "apiserver.k8s.io/v1beta1" | "apiserver.k8s.io/v1") {
            return Err(invalid("apiVersion", format!("unknown version {:?}", file.api_version)));
        }
        if file.kind != "EgressSelectorConfiguration" {
            return Err(invalid("kind", format!("must be EgressSelectorConfiguration, not {:?}", file.kind)));
        }
        let mut selections: Vec<(String, Selection)> = Vec::new();
        for (index, selection) in file.egress_selections.iter().enumerate() {
            let at = format!("egressSelections[{index}]");
            let name = selection.name.to_ascii_lowercase();
            if !matches!(name.as_str(), "controlplane" | "etcd" | "cluster") {
                let reason = format!("{:?} is not one of controlplane, etcd, cluster", selection.name);
                return Err(invalid(&format!("{at}.name"), reason));
            }
            if selections.iter().any(|(other, _)| *other == name) {
                return Err(invalid(&format!("{at}.name"), format!("{name:?} is there twice")));
            }
            selections.push((name, Selection { protocol: protocol(&selection.connection, &at)? }));
        }
        Ok(Self { selections })
    }

    /// Returns the selection of this name (`cluster` for backends), if present.
    pub fn selection(&self, name: &str) -> Option<&Selection> {
        self.selections.iter().find(|(other, _)| other == name).map(|(_, selection)| selection)
    }
}

fn protocol(connection: &FileConnection, at: &str) -> Result<Protocol, EgressError> {
    let field = format!("{at}.connection.transport");
    match (connection.proxy_protocol.as_str(), &connection.transport) {
        ("Direct", None) => Ok(Protocol::Direct),
        ("Direct", Some(_)) => Err(invalid(&field, "must not be given for Direct".into())),
        ("HTTPConnect", Some(given)) => transport(given, &field).map(Protocol::HttpConnect),
        ("HTTPConnect", None) => Err(invalid(&field, "is needed for HTTPConnect".into())),
        ("GRPC", _) => Err(invalid(
            &format!("{at}.connection.proxyProtocol"),
            "GRPC is not supported by Portico; use HTTPConnect, over uds or tcp".into(),
        )),
        (other, _) => Err(invalid(
            &format!("{at}.connection.proxyProtocol"),
            format!("{other:?} is not one of Direct, HTTPConnect"),
        )),
    }
}

fn transport(config: &FileTransport, field: &str) -> Result<Transport, EgressError> {
    match (&config.tcp, &config.uds) {
        (Some(tcp), None) => tcp_transport(tcp, &format!("{field}.tcp")),
        (None, Some(uds)) if uds.uds_name.is_empty() => {
            Err(invalid(&format!("{field}.uds.udsName"), "must not be empty".into()))
        }
        (None, Some(uds)) => Ok(Transport::Uds(uds.uds_name.clone().into())),
        _ => Err(invalid(field, "exactly one of tcp and uds is needed".into())),
    }
}

fn tcp_transport(tcp: &FileTcp, field: &str) -> Result<Transport, EgressError> {
    let url_field = format!("{field}.url");
    let bad_url = || invalid(&url_field, format!("{:?} is not a URL with a host", tcp.url));
    let uri: Uri = tcp.url.parse().map_err(|_| bad_url())?;
    let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(bad_url)?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let tls_field = format!("{field}.tlsConfig");
    match (uri.scheme_str(), &tcp.tls_config) {
        (Some("http"), None) => Ok(Transport::Tcp { host, port: uri.port_u16().unwrap_or(80), tls: None }),
        (Some("http"), Some(_)) => Err(invalid(&tls_field, "must not be given for an http URL".into())),
        (Some("https"), Some(tls)) => {
            let tls = Some(proxy_tls(tls, &tls_field)?);
            Ok(Transport::Tcp { host, port: uri.port_u16().unwrap_or(443), tls })
        }
        (Some("https"), None) => Err(invalid(&tls_field, "is needed for an https URL".into())),
        _ => Err(invalid(&url_field, format!("{:?} must begin with http:// or https://", tcp.url))),
    }
}

fn proxy_tls(tls: &FileTls, field: &str) -> Result<ProxyTls, EgressError> {
    let existing = |name: &str, value: &Option<String>| -> Result<Option<PathBuf>, EgressError> {
        let Some(path) = value.as_deref().filter(|path| !path.is_empty()) else { return Ok(None) };
        if !Path::new(path).is_file() {
            return Err(invalid(&format!("{field}.{name}"), format!("the file {path} does not exist")));
        }
        Ok(Some(path.into()))
    };
    let needed = |name: &str, value: &Option<String>| {
        existing(name, value)?.ok_or_else(|| invalid(&format!("{field}.{name}"), "is needed for TLS".into()))
    };
    Ok(ProxyTls {
        ca_bundle: existing("caBundle", &tls.ca_bundle)?,
        client_cert: needed("clientCert", &tls.client_cert)?,
        client_key: needed("clientKey", &tls.client_key)?,
    })
}

fn invalid(field: &str, reason: String) -> EgressError {
    EgressError::Invalid { field: field.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n";

    fn parse(selections: &str) -> Result<EgressConfig, String> {
        EgressConfig::parse(&format!("{HEAD}{selections}")).map_err(|error| error.to_string())
    }

    #[test]
    fn names_match_in_any_case_and_a_missing_name_is_none() {
        let config = parse(
            "- name: Cluster\n  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: /run/p.sock}}}\n\
             - name: etcd\n  connection: {proxyProtocol: Direct}\n",
        )
        .unwrap();
        let uds = Protocol::HttpConnect(Transport::Uds("/run/p.sock".into()));
        assert_eq!(config.selection("cluster").unwrap().protocol, uds);
        assert_eq!(config.selection("etcd").unwrap().protocol, Protocol::Direct);
        assert!(config.selection("controlplane").is_none());
    }

    #[test]
    fn an_http_proxy_has_no_tls_and_a_default_port() {
        let config = parse(
            "- name: cluster\n  connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'http://proxy.example'}}}\n",
        )
        .unwrap();
        let tcp = Transport::Tcp { host: "proxy.example".into(), port: 80, tls: None };
        assert_eq!(config.selection("cluster").unwrap().protocol, Protocol::HttpConnect(tcp));
    }

    #[test]
    fn invalid_values_are_refused_with_the_field() {
        let at =
            |connection: &str| parse(&format!("- name: cluster\n  connection: {connection}\n")).unwrap_err();
        let table = [
            ("{proxyProtocol: Direct, transport: {uds: {udsName: x}}}", "must not be given for Direct"),
            ("{proxyProtocol: HTTPConnect}", "is needed for HTTPConnect"),
            ("{proxyProtocol: HTTPConnect, transport: {}}", "exactly one of tcp and uds"),
            (
                "{proxyProtocol: HTTPConnect, transport: {uds: {udsName: x}, tcp: {url: 'http://a'}}}",
                "exactly one",
            ),
            ("{proxyProtocol: HTTPConnect, transport: {uds: {udsName: ''}}}", "udsName: must not be empty"),
            (
                "{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'http://a', tlsConfig: {}}}}",
                "for an http URL",
            ),
            ("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://a'}}}", "tlsConfig: is needed"),
            (
                "{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://a', tlsConfig: {}}}}",
                "clientCert: is needed",
            ),
            (
                "{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://a', tlsConfig: {clientCert: /nosuch}}}}",
                "clientCert: the file /nosuch does not exist",
            ),
            ("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'ftp://a'}}}", "must begin with http"),
            ("{proxyProtocol: GRPC, transport: {uds: {udsName: x}}}", "GRPC is not supported by Portico"),
            ("{proxyProtocol: Magic}", "is not one of Direct, HTTPConnect"),
            ("{proxyProtocol: Direct, extra: 1}", "extra"),
        ];
        for (connection, words) in table {
            let error = at(connection);
            assert!(error.contains(words), "{connection}: {error}");
        }
    }

    #[test]
    fn unknown_and_repeated_names_and_fields_are_refused() {
        let direct = "  connection: {proxyProtocol: Direct}\n";
        assert!(parse(&format!("- name: moon\n{direct}")).unwrap_err().contains("\"moon\" is not one of"));
        let twice = format!("- name: etcd\n{direct}- name: ETCD\n{direct}");
        assert!(parse(&twice).unwrap_err().contains("egressSelections[1].name: \"etcd\" is there twice"));
        assert!(EgressConfig::parse("apiVersion: v1\nkind: X\n").is_err());
        assert!(EgressConfig::parse(&format!("kind: X\n{HEAD}")).is_err());
    }
}
