//! From settings to the proxy: address rules, egress, client certificate, limits.

use portico_kit::certs::{FileError, FileWatch};
use portico_kit::dial::{AddressPolicy, Connector, ConnectorOptions};
use portico_kit::egress::{EgressConfig, EgressDialer, EgressMetrics};
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_kit::tls::CertPair;
use portico_proxy::{Limits, Proxy, ProxyMetrics, ProxySettings};

use super::StartError;
use crate::settings::FacadeSettings;

/// The selection of the egress configuration that backends are dialled through.
const SELECTION: &str = "cluster";

/// The proxy and the file that gives its identity.
#[derive(Clone)]
pub(super) struct Proxying {
    pub(super) proxy: Proxy,
    pub(super) policy: AddressPolicy,
    files: Option<FileWatch<CertPair>>,
}

impl Proxying {
    /// Reads all files.
    pub(super) fn load(
        settings: &FacadeSettings,
        registry: &Registry,
        tasks: &TaskSet,
    ) -> Result<Self, StartError> {
        let wanted = &settings.proxying;
        let files = wanted.client_cert.clone();
        let files =
            files.map(|(cert, key)| FileWatch::pair("--proxy-client-cert-file", cert, key)).transpose()?;
        let client_cert = files.as_ref().map(FileWatch::subscribe);
        let egress = match &wanted.egress_selector_config_file {
            Some(path) => match EgressConfig::load(path)?.selection(SELECTION) {
                Some(selection) => EgressDialer::new(selection, Some(EgressMetrics::new(registry)))?,
                None => None,
            },
            None => None,
        };
        let policy = AddressPolicy::new(wanted.backend_allow_cidr.clone());
        let options = ConnectorOptions {
            dial_timeout: wanted.dial_timeout,
            policy: policy.clone(),
            ..ConnectorOptions::default()
        };
        let limits = Limits {
            max_idle_per_target: wanted.max_idle_connections,
            max_requests_per_backend: wanted.max_requests_per_backend,
            dial_timeout: wanted.dial_timeout,
            reject_redirects: wanted.reject_redirects,
            ..Limits::default()
        };
        let connector = Connector::with_egress(options, egress);
        let proxy = ProxySettings { connector, client_cert, tasks: tasks.clone(), limits };
        Ok(Self { proxy: Proxy::new(proxy, ProxyMetrics::new(registry)), policy, files })
    }

    /// Polls the client certificate; the proxy sees its changes.
    pub(super) fn follow(&self, tasks: &TaskSet) {
        if let Some(files) = &self.files {
            files.watch(tasks, "aggregator-reload-proxy-client-cert");
        }
    }

    /// Looks at the files now.
    pub(super) async fn reload(&self) -> Vec<FileError> {
        match &self.files {
            Some(files) => files.reload().await.err().into_iter().collect(),
            None => Vec::new(),
        }
    }
}
