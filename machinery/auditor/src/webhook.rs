//! Audit webhook: a server that receives lists of events. Failed requests are retried a few times.

use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use http::{Method, Uri};
use portico_audit::{API_VERSION, Event};
use portico_kit::dial::{Connector, ConnectorOptions, Target};
use portico_kit::fetch::{FetchRequest, FetchTarget, Fetcher};
use portico_kit::tasks::TaskSet;
use portico_kit::tls::{CertPair, ClientTls, Roots};
use portico_proto::client::{KubeconfigCluster, KubeconfigUser, KubeconfigUsers, Source};
use tokio::sync::Semaphore;

use crate::metrics::AuditMetrics;
use crate::settings::AuditWebhookSettings;

pub(super) const PLUGIN: &str = "webhook";
/// Time for a request to the audit webhook.
///
/// `defaultRequestTimeout` of kube-apiserver.
///
/// Limit (Audit): the request is retried.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Attempts to send a batch to the audit webhook.
///
/// Limit (Audit): the batch is lost and counted.
const MAX_ATTEMPTS: u32 = 5;
/// Factor between the delays of consecutive attempts, and maximum random part added to a delay.
const BACKOFF_FACTOR: f64 = 1.5;
const BACKOFF_JITTER: f64 = 0.2;
/// Maximum size of a response in bytes. Only the status of the response is used.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// Maximum number of idle connections.
const MAX_IDLE_CONNECTIONS: usize = 4;
/// Concurrent requests to the audit webhook.
///
/// Limit (Audit): further ones wait.
const MAX_REQUESTS: usize = 256;

/// Destination that posts events to the audit webhook.
pub(super) struct WebhookDestination {
    fetcher: Fetcher,
    target: FetchTarget,
    path: String,
    headers: HeaderMap,
    initial_backoff: Duration,
    requests: Semaphore,
    metrics: AuditMetrics,
}

impl WebhookDestination {
    /// Reads the kubeconfig, and the files that it names.
    pub(super) fn read(
        settings: &AuditWebhookSettings,
        metrics: AuditMetrics,
        tasks: &TaskSet,
    ) -> Result<Self, String> {
        let file = &settings.config_file;
        let cluster = KubeconfigCluster::read(file).map_err(|error| error.to_string())?;
        let user = current_user(file)?;
        let (target, path) = parse_target(&cluster, &user)?;
        let connector = Connector::new(ConnectorOptions::default());
        Ok(Self {
            fetcher: Fetcher::new(connector, tasks.clone()).with_idle_per_target(MAX_IDLE_CONNECTIONS),
            target,
            path,
            headers: request_headers(&user)?,
            initial_backoff: settings.initial_backoff,
            requests: Semaphore::new(MAX_REQUESTS),
            metrics,
        })
    }

    /// Sends events, with retries. Returns false if all attempts failed.
    pub(super) async fn post(&self, events: &[Bytes]) -> bool {
        let (body, mut delay) = (encode_event_list(events), self.initial_backoff);
        for attempt in 1.. {
            let Err(error) = self.try_post(body.clone()).await else { return true };
            if attempt == MAX_ATTEMPTS {
                self.metrics.count_lost(PLUGIN, events.len(), &error);
                break;
            }
            tracing::debug!(attempt, error, "cannot deliver audit events, retrying");
            tokio::time::sleep(delay.mul_f64(1.0 + BACKOFF_JITTER * rand::random::<f64>())).await;
            delay = delay.mul_f64(BACKOFF_FACTOR);
        }
        false
    }

    async fn try_post(&self, body: Bytes) -> Result<(), String> {
        let request = FetchRequest {
            method: Method::POST,
            path: self.path.clone(),
            headers: self.headers.clone(),
            timeout: TIMEOUT,
            body,
            max_body_bytes: MAX_RESPONSE_BYTES,
        };
        let _permit = self.requests.acquire().await.map_err(|error| error.to_string())?;
        match self.fetcher.send(&self.target, &request).await {
            Ok(response) if response.status.is_success() => Ok(()),
            Ok(response) => Err(format!("the server responded with status {}", response.status)),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Encodes an `EventList`.
fn encode_event_list(events: &[Bytes]) -> Bytes {
    let size: usize = events.iter().map(Bytes::len).sum();
    let mut out = BytesMut::with_capacity(size + 128);
    out.put_slice(
        format!(r#"{{"kind":"EventList","apiVersion":"{API_VERSION}","metadata":{{}},"items":["#).as_bytes(),
    );
    for (i, event) in events.iter().enumerate() {
        out.put_slice(if i == 0 { b"{" } else { b",{" });
        // Elements of a list have no `kind` and `apiVersion`.
        let element = Event::without_type(event).unwrap_or_default();
        out.put_slice(element.strip_suffix(b"\n").unwrap_or(element));
    }
    out.put_slice(b"]}\n");
    out.freeze()
}

/// Returns the user of the current context; empty if the context has none.
fn current_user(file: &Path) -> Result<KubeconfigUser, String> {
    let KubeconfigUsers { users, current } =
        KubeconfigUsers::read(file).map_err(|error| error.to_string())?;
    let user = users.into_iter().find(|user| Some(&user.name) == current.as_ref());
    Ok(user.unwrap_or_default())
}

fn parse_target(cluster: &KubeconfigCluster, user: &KubeconfigUser) -> Result<(FetchTarget, String), String> {
    let invalid = |reason: &str| format!("the server {:?} {reason}", cluster.server);
    if cluster.server.is_empty() {
        return Err("invalid configuration: no configuration has been provided".to_owned());
    }
    let url: Uri = cluster.server.parse().map_err(|_| invalid("is not a URL"))?;
    let host = url.host().ok_or_else(|| invalid("has no host"))?.trim_matches(['[', ']']).to_owned();
    let (tls, port) = match url.scheme_str() {
        Some("https") => (Some(client_tls(cluster, user, &host)?), 443),
        Some("http") => (None, 80),
        _ => return Err(invalid("is neither https nor http")),
    };
    let target = Target::new(host, url.port_u16().unwrap_or(port));
    let host = url.authority().map(|authority| authority.as_str().to_owned());
    let path = match url.path().trim_end_matches('/') {
        "" => "/",
        path => path,
    };
    Ok((FetchTarget { target, tls, host }, format!("{path}?timeout={}s", TIMEOUT.as_secs())))
}

fn client_tls(cluster: &KubeconfigCluster, user: &KubeconfigUser, host: &str) -> Result<ClientTls, String> {
    let pair = match &user.certificate {
        Some((cert, key)) => {
            let pair = CertPair::from_pem("client-certificate", &read_source(cert)?, &read_source(key)?);
            Some(pair.map_err(|error| error.to_string())?)
        }
        None => None,
    };
    let ca = cluster.ca_pem.as_deref().unwrap_or_default();
    ClientTls::builder()
        .roots(Roots::bundle("certificate-authority", ca.trim_ascii()))
        .client_cert(pair)
        .server_name(cluster.server_name.clone().unwrap_or_else(|| host.to_owned()))
        .build()
        .map_err(|error| error.to_string())
}

fn request_headers(user: &KubeconfigUser) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
    headers.insert(USER_AGENT, HeaderValue::from_static("portico"));
    let authorization = match (&user.token, &user.basic) {
        (Some(token), _) => format!("Bearer {}", String::from_utf8_lossy(&read_source(token)?).trim()),
        (None, Some((name, password))) => format!("Basic {}", STANDARD.encode(format!("{name}:{password}"))),
        (None, None) => return Ok(headers),
    };
    let mut value = HeaderValue::from_str(&authorization).map_err(|_| "the user's token cannot be sent")?;
    value.set_sensitive(true);
    headers.insert(AUTHORIZATION, value);
    Ok(headers)
}

fn read_source(source: &Source) -> Result<Vec<u8>, String> {
    match source {
        Source::Data(data) => Ok(data.clone()),
        Source::File(file) => portico_kit::config_file::read(file)
            .map_err(|error| format!("{}: {}", file.display(), portico_gostd::os::error_text(&error))),
    }
}
