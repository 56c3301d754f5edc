//! Builds the proxy from settings: address rules, egress, client certificates, limits.

use std::path::PathBuf;
use std::time::Duration;

use portico_kit::certs::{FileError, FileWatch};
use portico_kit::dial::{AddressPolicy, Connector, ConnectorOptions};
use portico_kit::egress::{EgressConfig, EgressDialer, EgressMetrics};
use portico_kit::metrics::Registry;
use portico_kit::pki::CertInfo;
use portico_kit::tasks::TaskSet;
use portico_kit::tls::{CertPair, ClientTls, Roots, TlsError};
use portico_machinery::resolve::{Bundle, CaBundle};
use portico_proxy::{ClientCert, Kubelets, Limits, Proxy, ProxyMetrics, ProxySettings};
use tokio::sync::watch;

use super::error::StartError;
use crate::settings::{FacadeSettings, KubeletSettings, ProxyClientCertificate};

/// Egress selection for connections to backends.
const EGRESS_SELECTION: &str = "cluster";

/// The proxy and the files with its client certificates and CAs.
#[derive(Clone)]
pub(super) struct ProxyAssembly {
    pub(super) proxy: Proxy,
    pub(super) policy: AddressPolicy,
    client_cert: Option<ClientCert>,
    files: ProxyFiles,
}

/// Files that are reread when they change.
#[derive(Clone)]
struct ProxyFiles {
    proxy_client: Option<FileWatch<CertPair>>,
    kubelet_client: Option<FileWatch<CertPair>>,
    kubelet_authority: Option<FileWatch<Bundle>>,
    peer_authority: Option<FileWatch<Bundle>>,
}

impl ProxyAssembly {
    /// Reads all files.
    pub(super) fn load(
        settings: &FacadeSettings,
        registry: &Registry,
        tasks: &TaskSet,
    ) -> Result<Self, StartError> {
        let proxying = &settings.proxying;
        let files = ProxyFiles::load(settings)?;
        let client_cert = match (&proxying.client_cert, &files.proxy_client) {
            (Some(ProxyClientCertificate::Channel(channel)), _) => {
                Some(ClientCert::Optional(channel.clone()))
            }
            (_, files) => files.as_ref().map(|files| ClientCert::Present(files.subscribe())),
        };
        let egress = match &proxying.egress_selector_config_file {
            Some(path) => match EgressConfig::load(path)?.selection(EGRESS_SELECTION) {
                Some(selection) => EgressDialer::new(selection, Some(EgressMetrics::new(registry)))?,
                None => None,
            },
            None => None,
        };
        let policy = AddressPolicy::new(proxying.backend_allow_cidr.clone());
        let options = ConnectorOptions {
            dial_timeout: proxying.dial_timeout,
            policy: policy.clone(),
            ..ConnectorOptions::default()
        };
        let limits = Limits {
            max_idle_per_target: proxying.max_idle_connections,
            max_requests_per_backend: proxying.max_requests_per_backend,
            dial_timeout: proxying.dial_timeout,
            reject_redirects: proxying.reject_redirects,
            max_mirrored_requests: proxying.max_mirrored_requests,
            mirror_timeout: proxying.mirror_timeout,
            connection_bytes_per_second: settings.kubelets.max_connection_bytes,
            web_socket_idle_timeout: settings.kubelets.streaming_idle_timeout,
            web_socket_message_bytes: settings.kubelets.streaming_max_message_bytes,
            ..Limits::default()
        };
        let connector = Connector::with_egress(options, egress);
        let kubelets = files.kubelets(settings.kubelets.timeout);
        let presented_cert = client_cert.clone();
        let proxy =
            ProxySettings { connector, client_cert: presented_cert, kubelets, tasks: tasks.clone(), limits };
        Ok(Self { proxy: Proxy::new(proxy, ProxyMetrics::new(registry)), policy, client_cert, files })
    }

    /// Returns the client certificate that the proxy presents to backends.
    pub(super) fn certificates(&self) -> Vec<(&'static str, CertInfo)> {
        let presented_cert = self.client_cert.as_ref().and_then(ClientCert::current);
        presented_cert.iter().map(|pair| ("client of backends", pair.info().clone())).collect()
    }

    /// Polls the files; the proxy receives their changes.
    pub(super) fn follow(&self, tasks: &TaskSet) {
        let ProxyFiles { proxy_client, kubelet_client, kubelet_authority, peer_authority } = &self.files;
        if let Some(files) = proxy_client {
            files.watch(tasks, "aggregator-reload-proxy-client-cert");
        }
        if let Some(files) = kubelet_client {
            files.watch(tasks, "kubelet-client-certificate");
        }
        if let Some(file) = kubelet_authority {
            file.watch(tasks, "kubelet-certificate-authority");
        }
        if let Some(file) = peer_authority {
            file.watch(tasks, "peer-certificate-authority");
        }
    }

    /// Rereads the files now.
    pub(super) async fn reload(&self) -> Vec<FileError> {
        let ProxyFiles { proxy_client, kubelet_client, kubelet_authority, peer_authority } = &self.files;
        let mut errors = Vec::new();
        for pair in [proxy_client, kubelet_client].into_iter().flatten() {
            errors.extend(pair.reload().await.err());
        }
        for file in [kubelet_authority, peer_authority].into_iter().flatten() {
            errors.extend(file.reload().await.err());
        }
        errors
    }

    /// CA bundle for certificates of peers; `None` if no requests are forwarded to peers.
    pub(super) fn peer_authority(&self) -> Option<watch::Receiver<CaBundle>> {
        self.files.peer_authority.as_ref().map(FileWatch::subscribe)
    }
}

impl ProxyFiles {
    fn load(settings: &FacadeSettings) -> Result<Self, FileError> {
        let KubeletSettings { client_cert, certificate_authority, .. } = &settings.kubelets;
        let pair = |flag, files: &Option<_>| {
            files.clone().map(|(cert, key)| FileWatch::cert_pair(flag, cert, key)).transpose()
        };
        let authorities = |flag, file: &Option<PathBuf>| {
            let watched = |file: &PathBuf| {
                FileWatch::new(vec![file.clone()], move |raw| parse_authority(flag, &raw[0]))
            };
            file.as_ref().map(watched).transpose()
        };
        let proxy_client = match settings.proxying.client_cert.clone() {
            Some(ProxyClientCertificate::Files { cert, key }) => Some((cert, key)),
            Some(ProxyClientCertificate::Channel(_)) | None => None,
        };
        Ok(Self {
            proxy_client: pair("--proxy-client-cert-file", &proxy_client)?,
            kubelet_client: pair("--kubelet-client-certificate", client_cert)?,
            kubelet_authority: authorities("--kubelet-certificate-authority", certificate_authority)?,
            peer_authority: authorities("--peer-ca-file", &settings.peer_ca_file)?,
        })
    }

    fn kubelets(&self, dial_timeout: Duration) -> Kubelets {
        Kubelets {
            client_cert: self.kubelet_client.as_ref().map(|files| ClientCert::Present(files.subscribe())),
            authority: self.kubelet_authority.as_ref().map(FileWatch::subscribe),
            dial_timeout,
        }
    }
}

/// Returns a CA bundle that is usable for TLS.
fn parse_authority(flag: &str, pem: &[u8]) -> Result<Bundle, TlsError> {
    let roots = Roots::Pem { label: flag.to_owned(), pem: pem.into() };
    ClientTls::builder().roots(roots).build()?;
    Ok(Bundle::new(pem.to_vec()))
}
