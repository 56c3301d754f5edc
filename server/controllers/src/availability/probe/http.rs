//! Probe over the network: a size-limited GET with the identity of the aggregator, verified in the same way as real traffic.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use portico_kit::dial::{DialStage, Target};
use portico_kit::fetch::{FetchError, FetchRequest, FetchTarget, Fetcher};
use portico_kit::tls::{Alpn, CertPair, ClientTls, Roots, TlsError};
use portico_machinery::user::{AGGREGATOR, MASTERS};

use super::{ProbeFailure, ProbeStage, Prober};
use crate::availability::decision::ProbePlan;

/// Limits and identity headers of probes.
#[derive(Clone, Debug)]
pub struct ProbeSettings {
    /// Time for one availability probe, from the dial to the last byte.
    ///
    /// Limit (Backends): the attempt fails.
    pub timeout: Duration,
    /// Size of the response to an availability probe.
    ///
    /// Limit (Backends, bytes): the probe fails.
    pub max_body: usize,
    /// Header with the user name.
    pub user_header: HeaderName,
    /// Header with a group.
    pub group_header: HeaderName,
}

impl Default for ProbeSettings {
    /// Returns upstream's 5 s and standard headers, and 16 MiB.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            max_body: 16 * 1024 * 1024,
            user_header: HeaderName::from_static("x-remote-user"),
            group_header: HeaderName::from_static("x-remote-group"),
        }
    }
}

/// Inputs of TLS settings other than the server name. There are few distinct ones, which APIServices share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TlsKey {
    bundle: Option<Arc<str>>,
    insecure: bool,
    http2: bool,
}

/// TLS settings per server name, built from shared ones. Probes of APIServices with equal settings for the same backend
/// share pooled connections.
#[derive(Default)]
struct TlsCache {
    client_cert: Option<CertPair>,
    by_key: HashMap<TlsKey, ClientTls>,
    by_server_name: HashMap<(TlsKey, String), ClientTls>,
}

/// Maximum number of entries; a full cache is cleared and built again.
const MAX_BY_KEY: usize = 1024;
const MAX_BY_SERVER_NAME: usize = 16 * 1024;

/// Prober that uses the network. Cheap to clone.
#[derive(Clone)]
pub struct HttpProber {
    fetcher: Fetcher,
    settings: Arc<ProbeSettings>,
    tls: Arc<Mutex<TlsCache>>,
}

impl HttpProber {
    /// Creates a prober that presents this client certificate (`--proxy-client-cert-file`), if there is one.
    #[must_use]
    pub fn new(fetcher: Fetcher, settings: ProbeSettings, client_cert: Option<CertPair>) -> Self {
        let tls = Arc::new(Mutex::new(TlsCache { client_cert, ..TlsCache::default() }));
        Self { fetcher, settings: Arc::new(settings), tls }
    }

    /// Replaces the client certificate; all TLS settings are built again.
    pub fn set_client_cert(&self, client_cert: Option<CertPair>) {
        *self.tls.lock() = TlsCache { client_cert, ..TlsCache::default() };
    }

    fn fetch_target(&self, plan: &ProbePlan, attempt: usize) -> Result<FetchTarget, ProbeFailure> {
        let target = plan
            .targets
            .get(attempt % plan.targets.len().max(1))
            .ok_or_else(|| failure(ProbeStage::Dial, false, "no address to dial".to_owned()))?;
        let tls = self
            .tls
            .lock()
            .client_tls(plan)
            .map_err(|error| failure(ProbeStage::Tls, false, error.to_string()))?;
        Ok(FetchTarget { target: Target::new(target.host.as_str(), target.port), tls: Some(tls), host: None })
    }

    fn request(&self, plan: &ProbePlan) -> FetchRequest {
        let mut headers = HeaderMap::new();
        headers.insert(&self.settings.user_header, HeaderValue::from_static(AGGREGATOR));
        if plan.as_masters {
            headers.insert(&self.settings.group_header, HeaderValue::from_static(MASTERS));
        }
        FetchRequest {
            method: http::Method::GET,
            path: plan.path.clone(),
            headers,
            timeout: self.settings.timeout,
            body: Default::default(),
            max_body_bytes: self.settings.max_body,
        }
    }
}

impl Prober for HttpProber {
    async fn probe(&self, plan: &ProbePlan, attempt: usize) -> Result<(), ProbeFailure> {
        let target = self.fetch_target(plan, attempt)?;
        let result = match self.fetcher.send(&target, &self.request(plan)).await {
            Ok(fetched) if fetched.status.is_success() => return Ok(()),
            Ok(fetched) => {
                let message = format!("bad status from {}: {}", plan.url(), fetched.status.as_u16());
                failure(ProbeStage::Status, false, message)
            }
            Err(error) => to_probe_failure(&error, plan),
        };
        self.fetcher.close_idle(&target);
        Err(result)
    }
}

impl TlsCache {
    fn client_tls(&mut self, plan: &ProbePlan) -> Result<ClientTls, TlsError> {
        let bundle = plan.bundle.as_ref().filter(|_| !plan.insecure);
        let key =
            TlsKey { bundle: bundle.map(|b| b.hash.clone()), insecure: plan.insecure, http2: plan.http2 };
        let server_key = (key, plan.server_name.clone());
        if let Some(tls) = self.by_server_name.get(&server_key) {
            return Ok(tls.clone());
        }
        let tls = self.shared_tls(&server_key.0, plan)?.with_server_name(&plan.server_name)?;
        if self.by_server_name.len() >= MAX_BY_SERVER_NAME {
            self.by_server_name.clear();
        }
        self.by_server_name.insert(server_key, tls.clone());
        Ok(tls)
    }

    fn shared_tls(&mut self, key: &TlsKey, plan: &ProbePlan) -> Result<ClientTls, TlsError> {
        if let Some(shared) = self.by_key.get(key) {
            return Ok(shared.clone());
        }
        let roots = match (&plan.bundle, plan.insecure) {
            (_, true) => Roots::Insecure,
            (Some(bundle), false) => Roots::bundle("spec.caBundle", &bundle.pem),
            (None, false) => Roots::System,
        };
        let alpn = if plan.http2 { Alpn::Both } else { Alpn::Http1 };
        let client_tls =
            ClientTls::builder().roots(roots).alpn(alpn).client_cert(self.client_cert.clone()).build()?;
        if self.by_key.len() >= MAX_BY_KEY {
            self.by_key.clear();
        }
        self.by_key.insert(key.clone(), client_tls.clone());
        Ok(client_tls)
    }
}

fn failure(stage: ProbeStage, timed_out: bool, message: String) -> ProbeFailure {
    ProbeFailure { stage, timed_out, message }
}

/// Converts an error of the fetcher, whose text contains the stage, address and certificate names. With several targets the
/// address differs between attempts, and the same failure would change the message each time: the Service replaces it.
fn to_probe_failure(error: &FetchError, plan: &ProbePlan) -> ProbeFailure {
    let (stage, timed_out) = match error {
        FetchError::Dial(dial) => match dial.stage() {
            DialStage::Tls => (ProbeStage::Tls, dial.is_timeout()),
            DialStage::Resolve | DialStage::Dial | DialStage::Egress => (ProbeStage::Dial, dial.is_timeout()),
        },
        FetchError::Timeout { .. } => (ProbeStage::Http, true),
        FetchError::Http { .. } | FetchError::TooLong { .. } | FetchError::Request { .. } => {
            (ProbeStage::Http, false)
        }
    };
    let mut message = error.to_string();
    if plan.targets.len() > 1 {
        for target in &plan.targets {
            message = message.replace(&target.to_string(), &plan.display_address);
        }
    }
    failure(stage, timed_out, message)
}
