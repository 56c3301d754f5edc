//! HTTPS client for the facade that a kubeconfig names.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};
use portico_kit::dial::{Connector, ConnectorOptions, Target};
use portico_kit::fetch::{FetchRequest, FetchResponse, FetchTarget, Fetcher};
use portico_kit::tasks::TaskSet;
use portico_kit::tls::{CertPair, ClientTls, Roots};
use portico_machinery::Status;
use portico_proto::client::Credentials;

use super::failure::Failure;
use crate::connection_flags::ConnectionFlags;
use crate::control_service::NoClient;

/// Header that requests a trace, and that marks a response whose body is a trace.
pub(super) const ROUTE_TRY: HeaderName = HeaderName::from_static("portico-route-try");
/// Deadline of a traced request, longer than the default `--request-timeout` of facades.
const DEADLINE: Duration = Duration::from_secs(90);
/// Maximum size of a response body in bytes.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

#[derive(Debug, clap::Args)]
pub(super) struct Facade {
    #[command(flatten)]
    flags: ConnectionFlags,
    /// Context of the kubeconfig [default: its current context]
    #[arg(long)]
    context: Option<String>,
}

/// HTTP request to trace.
pub(super) struct TraceRequest {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Client that sends requests to a facade.
pub(super) struct FacadeClient {
    fetcher: Fetcher,
    target: FetchTarget,
    token: Option<HeaderValue>,
}

impl Facade {
    /// Returns a client, which connects when the first request is sent.
    pub(super) fn client(&self) -> Result<FacadeClient, Failure> {
        let file = self.flags.read().map_err(NoClient::Kubeconfig)?;
        let connection =
            self.flags.connection(&file, self.context.as_deref()).map_err(NoClient::Kubeconfig)?;
        let unusable = |reason: String| Failure::Facade(format!("{}: {reason}", connection.server));
        let target = target(&connection.server).ok_or_else(|| unusable("not an https URL".to_owned()))?;
        let (pair, token) = match &connection.credentials {
            Credentials::None => (None, None),
            Credentials::Certificate { cert_pem, key_pem } => {
                let pair = CertPair::from_pem("client-certificate", cert_pem, key_pem);
                (Some(pair.map_err(|error| unusable(error.to_string()))?), None)
            }
            Credentials::Token(token) => {
                let value = HeaderValue::from_str(&format!("Bearer {token}"));
                (None, Some(value.map_err(|_| unusable("the token cannot be sent in a header".to_owned()))?))
            }
        };
        let roots = match &connection.ca_pem {
            Some(pem) => Roots::Pem { label: "certificate-authority".to_owned(), pem: Arc::from(&**pem) },
            None => Roots::System,
        };
        let tls = ClientTls::builder().roots(roots).client_cert(pair).build();
        let tls = tls.and_then(|tls| match &connection.server_name {
            Some(name) => tls.with_server_name(name.clone()),
            None => Ok(tls),
        });
        let tls = tls.map_err(|error| unusable(error.to_string()))?;
        let fetcher = Fetcher::new(Connector::new(ConnectorOptions::default()), TaskSet::new());
        Ok(FacadeClient { fetcher, target: FetchTarget { target, tls: Some(tls), host: None }, token })
    }
}

impl FacadeClient {
    /// Sends a request and returns its trace as JSON.
    pub(super) async fn trace(&self, request: TraceRequest) -> Result<Bytes, Failure> {
        let fetched = self.send(request).await?;
        if fetched.headers.contains_key(ROUTE_TRY) {
            return Ok(fetched.body);
        }
        Err(Failure::Facade(match Status::from_json(&fetched.body) {
            Some(status) => status.message,
            None => format!(
                "the response has no trace (status {}): the server is of an earlier release, or not a facade",
                fetched.status
            ),
        }))
    }

    /// Returns an error unless the facade traces requests of this user.
    pub(super) async fn check_traces(&self) -> Result<(), Failure> {
        let headers = HeaderMap::from_iter([(ROUTE_TRY, HeaderValue::from_static("walk"))]);
        let request =
            TraceRequest { method: Method::GET, path: "/version".to_owned(), headers, body: Bytes::new() };
        self.trace(request).await.map(drop)
    }

    async fn send(&self, request: TraceRequest) -> Result<FetchResponse, Failure> {
        let TraceRequest { method, path, mut headers, body } = request;
        if let Some(token) = &self.token {
            headers.insert(AUTHORIZATION, token.clone());
        }
        let request = FetchRequest {
            method,
            path,
            headers,
            timeout: DEADLINE,
            body,
            max_body_bytes: MAX_RESPONSE_BYTES,
        };
        let fetched = self.fetcher.send(&self.target, &request).await;
        fetched.map_err(|error| Failure::Facade(error.to_string()))
    }
}

fn target(server: &str) -> Option<Target> {
    let uri: Uri = server.parse().ok()?;
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    let https = uri.scheme_str() == Some("https");
    https.then(|| Target::new(host, uri.port_u16().unwrap_or(443)))
}
