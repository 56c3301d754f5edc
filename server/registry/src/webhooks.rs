//! Client for webhooks: POST over TLS to a URL or Service that an object names, like upstream's webhook clients. Uses HTTP/1.1,
//! the name of the Service as TLS server name, the credentials configured for the host, and one deadline for the whole call.
//!
//! Transports are shared: webhooks with the same address and CA share connections, a limit of concurrent calls, and a circuit
//! for each address. While a circuit is open, calls fail immediately, except for occasional probes. Independent of the
//! content of calls.

mod address;
mod config;
mod credentials;
mod endpoint;
mod failure_reason;
mod refusal;
mod retries;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use parking_lot::Mutex;
use portico_kit::dial;
use portico_kit::fetch::{FetchError, FetchRequest, FetchResponse, FetchTarget, Fetcher, Progress};
use portico_machinery::route::{ResolveError, ServiceReference, Target};
use rand::seq::SliceRandom;
use tokio::time::{Instant, timeout_at};

pub use config::{Backends, ClientConfig, WebhookService};
pub use credentials::{Credential, WebhookUser, WebhookUsers};
pub use endpoint::WebhookEndpoint;
pub use transport::{OpenCircuit, TransportState};

use address::{Address, Destination};
use endpoint::Endpoint;
use failure_reason::FailureReason;
use transport::{Transport, Transports};

/// Addresses of a Service that a call tries.
///
/// Limit (Webhooks): the last failure is reported.
const ADDRESSES: usize = 3;
/// Minimum duration of a dial that counts as a failure of the address if the deadline of the call ends it.
const MIN_DIAL: Duration = Duration::from_secs(1);
/// User-Agent of upstream's webhook clients.
const USER_AGENT: &str = "kube-apiserver-admission";

/// Resolver of Service ports to addresses.
pub trait Resolver: Send + Sync {
    /// Returns the addresses of a Service's port.
    ///
    /// # Errors
    /// Reason for which the Service has no address.
    fn resolve(&self, service: &ServiceReference) -> Result<Vec<Target>, ResolveError>;
}

/// Connectors for calls of webhooks.
#[derive(Clone)]
pub struct WebhookConnectors {
    /// Connector for webhooks with URLs.
    pub urls: Fetcher,
    /// Connector for webhooks behind Services.
    pub services: Fetcher,
    /// Resolver of Services.
    pub resolver: Arc<dyn Resolver>,
}

/// Limits of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookLimits {
    /// Concurrent requests to one address; up to sixteen times as many wait, within their deadlines, and all further ones fail.
    pub requests: usize,
    /// Maximum size in bytes of a response of a conversion webhook.
    pub max_response_bytes: usize,
    /// Maximum size in bytes of a response of an admission webhook.
    pub max_review_bytes: usize,
}

impl Default for WebhookLimits {
    fn default() -> Self {
        Self { requests: 64, max_response_bytes: 64 << 20, max_review_bytes: 8 << 20 }
    }
}

/// Failure of a call, with upstream's message.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The configuration is invalid.
    #[error("{0}")]
    Configuration(String),
    /// No response was received.
    #[error("Post {}: {reason}", portico_gostd::strconv::quote(url))]
    Exchange {
        /// URL of the call.
        url: String,
        /// Stage at which the call failed, and the cause.
        reason: String,
        /// True if the peer reset the connection.
        reset: bool,
    },
    /// The response ended prematurely.
    #[error("unexpected error when reading response body. Please retry. Original error: {0}")]
    Broken(String),
    /// The response has an error code.
    #[error("{reason}")]
    Refused {
        /// HTTP status code.
        code: u16,
        /// Error message.
        reason: String,
        /// True if the response contains `Retry-After`.
        retry_after: bool,
    },
}

impl CallError {
    /// True if the call timed out.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Exchange { reason, .. } | Self::Broken(reason) => reason.contains("deadline exceeded"),
            Self::Refused { code, .. } => *code == 504,
            Self::Configuration(_) => false,
        }
    }

    /// True if a retry may succeed (upstream's `DefaultShouldRetry`).
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Exchange { reset, .. } => *reset,
            Self::Refused { code, retry_after, .. } => *retry_after || matches!(code, 429 | 500 | 504),
            Self::Configuration(_) | Self::Broken(_) => false,
        }
    }
}

impl ClientConfig {
    /// Checks that the configuration contains an address.
    ///
    /// # Errors
    /// Message about the invalid configuration.
    pub fn check(&self) -> Result<(), String> {
        Address::from_config(self, Duration::ZERO).map(drop)
    }
}

/// Client for webhooks. Cheap to clone.
#[derive(Clone)]
pub struct Webhooks {
    inner: Arc<SharedState>,
}

struct SharedState {
    connectors: WebhookConnectors,
    limits: WebhookLimits,
    transports: Mutex<Transports>,
}

impl Webhooks {
    /// Creates a client without connections.
    #[must_use]
    pub fn new(connectors: WebhookConnectors, limits: WebhookLimits) -> Self {
        let inner = SharedState { connectors, limits, transports: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Limits of calls.
    #[must_use]
    pub fn limits(&self) -> WebhookLimits {
        self.inner.limits
    }

    /// State of the calls to a webhook; `None` if it was not called recently.
    #[must_use]
    pub fn state(&self, endpoint: &WebhookEndpoint, users: &WebhookUsers) -> Option<TransportState> {
        let endpoint = endpoint.endpoint().ok()?;
        let key = endpoint.key(endpoint.user(users));
        let transport = self.inner.transports.lock().get(&key);
        transport.map(|transport| transport.state())
    }

    /// Sends JSON and returns the body of a successful response.
    ///
    /// # Errors
    /// [`CallError`] if the call fails.
    pub async fn post(&self, call: WebhookCall<'_>) -> Result<Bytes, CallError> {
        let endpoint = call.endpoint.endpoint().map_err(CallError::Configuration)?;
        let user = endpoint.user(call.users);
        let exchange_error =
            |reason: String, reset| CallError::Exchange { url: endpoint.address.url.clone(), reason, reset };
        let transport = self.transport(endpoint, user).map_err(|reason| exchange_error(reason, false))?;
        let exchange = Exchange { inner: &self.inner, endpoint, user, transport: &transport, call };
        let response = exchange.send_limited().await.map_err(|reason| match reason {
            FailureReason::Unanswered(reason) => exchange_error(reason, false),
            FailureReason::Reset(reason) => exchange_error(reason, true),
            FailureReason::Broken(reason) => CallError::Broken(reason),
        })?;
        let (code, retry_after) = (response.status.as_u16(), refusal::has_retry_after(&response));
        match code {
            200..=206 if response.body.is_empty() => Err(CallError::Refused {
                code,
                reason: refusal::empty_body_message(&response),
                retry_after: false,
            }),
            200..=206 => Ok(response.body),
            _ => Err(CallError::Refused { code, reason: refusal::error_message(&response), retry_after }),
        }
    }

    fn transport(
        &self,
        endpoint: &Endpoint,
        user: Option<&Arc<WebhookUser>>,
    ) -> Result<Arc<Transport>, String> {
        let calls = self.inner.limits.requests;
        let key = endpoint.key(user);
        let certificate = user.and_then(|user| user.certificate.as_ref()).map(|pair| pair.current());
        if let Some(transport) = self.inner.transports.lock().get_and_touch(&key, certificate.as_ref()) {
            return Ok(transport);
        }
        // Outside of the lock, as creating a transport takes time.
        let transport = Arc::new(Transport::new(&key, certificate, calls)?);
        Ok(self.inner.transports.lock().insert(key, transport))
    }
}

/// One call: the webhook, the credentials, the body and its limits.
#[derive(Clone)]
pub struct WebhookCall<'a> {
    /// Address of the webhook, and timeout.
    pub endpoint: &'a WebhookEndpoint,
    /// Credentials by host.
    pub users: &'a WebhookUsers,
    /// Body as JSON.
    pub body: Bytes,
    /// Maximum size of the response in bytes.
    pub max_response_bytes: usize,
}

/// One call in progress.
struct Exchange<'a> {
    inner: &'a SharedState,
    endpoint: &'a Endpoint,
    user: Option<&'a Arc<WebhookUser>>,
    transport: &'a Transport,
    call: WebhookCall<'a>,
}

impl Exchange<'_> {
    /// Waits for a call slot, then sends the request.
    async fn send_limited(&self) -> Result<FetchResponse, FailureReason> {
        let deadline = Instant::now() + self.endpoint.timeout;
        let busy = || {
            FailureReason::Unanswered(format!(
                "{} calls to this address are already in progress",
                self.inner.limits.requests
            ))
        };
        let _queue_slot = self.transport.queue_slots.try_acquire().map_err(|_| busy())?;
        let slot = timeout_at(deadline, self.transport.call_slots.acquire()).await;
        let _call_slot = slot.map_err(|_| busy())?;
        self.send_to_any_address(deadline).await
    }

    /// Sends the request to one address after another, until a dial succeeds.
    async fn send_to_any_address(&self, deadline: Instant) -> Result<FetchResponse, FailureReason> {
        let connectors = &self.inner.connectors;
        let (fetcher, targets) = match (&self.endpoint.address.destination, &self.endpoint.backends) {
            (Destination::Url(target), _) => (&connectors.urls, vec![target.clone()]),
            (Destination::Service(_), Some(backends)) => (&connectors.services, shuffled(backends.clone())),
            (Destination::Service(service), None) => {
                (&connectors.services, connectors.targets(service).map_err(FailureReason::Unanswered)?)
            }
        };
        let mut failure = "no address to dial".to_owned();
        let mut dial_count = 0;
        for (circuit, target) in self.transport.circuits(&targets).iter().zip(targets) {
            // A dial in the remaining time would not indicate whether the address works.
            if dial_count == ADDRESSES || (dial_count > 0 && Instant::now() >= deadline) {
                break;
            }
            if !circuit.allows() {
                failure = circuit.last().and_then(|last| last.failure).unwrap_or(failure);
                continue;
            }
            dial_count += 1;
            let start = Instant::now();
            match self.send_to(fetcher, target, deadline).await {
                Ok(fetched) => {
                    circuit.record_success();
                    return Ok(fetched);
                }
                Err(error) => match (failure_reason::from_fetch_error(&error), address_outcome(&error)) {
                    (reason, AddressOutcome::Connected) => {
                        circuit.record_success();
                        return Err(reason);
                    }
                    (
                        FailureReason::Unanswered(reason)
                        | FailureReason::Reset(reason)
                        | FailureReason::Broken(reason),
                        outcome,
                    ) => {
                        // A dial that ended because of this call's deadline may succeed for the next call.
                        let is_conclusive = start.elapsed() >= MIN_DIAL || Instant::now() < deadline;
                        if outcome == AddressOutcome::NotConnected && is_conclusive {
                            circuit.record_failure(reason.clone());
                        }
                        failure = reason;
                    }
                },
            }
        }
        Err(FailureReason::Unanswered(failure))
    }

    async fn send_to(
        &self,
        fetcher: &Fetcher,
        target: dial::Target,
        deadline: Instant,
    ) -> Result<FetchResponse, FetchError> {
        let (tls, host) = (Some(self.transport.tls.clone()), Some(self.endpoint.address.host.clone()));
        fetcher.send(&FetchTarget { target, tls, host }, &self.request(deadline)).await
    }

    fn request(&self, deadline: Instant) -> FetchRequest {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, */*"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        if let Some(user) = self.user {
            user.add_to(&mut headers);
        }
        FetchRequest {
            method: Method::POST,
            path: self.endpoint.address.path.clone(),
            headers,
            timeout: deadline.saturating_duration_since(Instant::now()),
            body: self.call.body.clone(),
            max_body_bytes: self.call.max_response_bytes,
        }
    }
}

/// Conclusion of a failed exchange about its address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AddressOutcome {
    /// The webhook was reached: other addresses would not help.
    Connected,
    /// The address cannot be dialed.
    NotConnected,
    /// No conclusion: local resources for a dial were exhausted.
    Local,
}

fn address_outcome(error: &FetchError) -> AddressOutcome {
    match error {
        FetchError::Dial(error) if error.is_local() => AddressOutcome::Local,
        FetchError::Dial(_) | FetchError::Timeout { progress: Progress::Dialing, .. } => {
            AddressOutcome::NotConnected
        }
        _ => AddressOutcome::Connected,
    }
}

fn shuffled(mut targets: Vec<Target>) -> Vec<dial::Target> {
    targets.shuffle(&mut rand::rng());
    targets.into_iter().map(|target| dial::Target::new(target.host, target.port)).collect()
}

impl WebhookConnectors {
    /// Addresses of a Service in random order, to distribute calls.
    fn targets(&self, service: &ServiceReference) -> Result<Vec<dial::Target>, String> {
        self.resolver.resolve(service).map(shuffled).map_err(|error| error.message)
    }
}
