//! Asking webhooks: a POST over TLS to whom an object names, by URL or by Service, as upstream's webhook clients do it
//! HTTP/1.1, the Service's name as TLS server name, the user that is given for the host, one deadline over everything.
//!
//! Transports are shared by content: webhooks that are at the same place behind the same CA share connections, a bound on calls
//! at a time, and a circuit for each address: what cannot be dialed fails at once, but for a probe now and then. It must not
//! know what is asked.

mod address;
mod config;
mod credentials;
mod endpoint;
mod reason;
mod refusal;
mod retries;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use parking_lot::Mutex;
use portico_kit::dial;
use portico_kit::fetch::{FetchError, FetchRequest, FetchTarget, Fetched, Fetcher, Progress};
use portico_machinery::route::{ResolveError, ServiceReference, Target};
use rand::seq::SliceRandom;
use tokio::time::{Instant, timeout_at};

pub use config::{Backends, ClientConfig, WebhookService};
pub use credentials::{Credential, WebhookUser, WebhookUsers};
pub use endpoint::WebhookEndpoint;
pub use transport::{OpenCircuit, TransportState};

use address::{Address, Place};
use endpoint::Endpoint;
use reason::Reason;
use transport::{Transport, Transports};

/// Addresses of a Service that a call tries.
///
/// Limit (Webhooks): the last failure is reported.
const ADDRESSES: usize = 3;
/// A dial that its call has cut short after less than this shows nothing about the address.
const MIN_DIAL: Duration = Duration::from_secs(1);
/// What upstream's clients of webhooks call themselves.
const USER_AGENT: &str = "kube-apiserver-admission";

/// Resolves a port of a Service to addresses.
pub trait Resolver: Send + Sync {
    /// The addresses of a Service's port.
    ///
    /// # Errors
    /// Why there is nowhere to dial.
    fn resolve(&self, service: &ServiceReference) -> Result<Vec<Target>, ResolveError>;
}

/// How webhooks are reached.
#[derive(Clone)]
pub struct WebhookConnectors {
    /// To those behind URLs.
    pub urls: Fetcher,
    /// To those behind Services.
    pub services: Fetcher,
    /// Where Services are.
    pub resolver: Arc<dyn Resolver>,
}

/// Bounds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookLimits {
    /// Requests at a time to one place; sixteen times as many wait, which counts against their deadline, and more fail.
    pub requests: usize,
    /// A longer answer of a conversion webhook, in bytes, is a failure.
    pub answer_bytes: usize,
    /// A longer answer of an admission webhook, in bytes, is a failure.
    pub review_bytes: usize,
}

impl Default for WebhookLimits {
    fn default() -> Self {
        Self { requests: 64, answer_bytes: 64 << 20, review_bytes: 8 << 20 }
    }
}

/// Why a webhook gave no answer, in upstream's words as far as they say why.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The configuration cannot be used.
    #[error("{0}")]
    Configuration(String),
    /// Nothing came back.
    #[error("Post {}: {reason}", portico_gostd::strconv::quote(url))]
    Exchange {
        /// The URL that was called.
        url: String,
        /// At which stage it ended, and how.
        reason: String,
        /// Whether the other side reset the connection.
        reset: bool,
    },
    /// An answer began, and did not end well.
    #[error("unexpected error when reading response body. Please retry. Original error: {0}")]
    Broken(String),
    /// It answered, but not with success.
    #[error("{reason}")]
    Refused {
        /// Its HTTP code.
        code: u16,
        /// The error.
        reason: String,
        /// Whether it sets when it is to be asked again.
        retry_after: bool,
    },
}

impl CallError {
    /// Whether it took too long.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Exchange { reason, .. } | Self::Broken(reason) => reason.contains("deadline exceeded"),
            Self::Refused { code, .. } => *code == 504,
            Self::Configuration(_) => false,
        }
    }

    /// Whether the next call may go better, as upstream's `DefaultShouldRetry` has it.
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
    /// Checks that it names a place.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        Address::of(self, Duration::ZERO).map(drop)
    }
}

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Webhooks {
    inner: Arc<Shared>,
}

struct Shared {
    connectors: WebhookConnectors,
    limits: WebhookLimits,
    transports: Mutex<Transports>,
}

impl Webhooks {
    /// Without connections yet.
    #[must_use]
    pub fn new(connectors: WebhookConnectors, limits: WebhookLimits) -> Self {
        let inner = Shared { connectors, limits, transports: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Bounds of calls.
    #[must_use]
    pub fn limits(&self) -> WebhookLimits {
        self.inner.limits
    }

    /// How calls to a webhook stand; nothing when it was not called lately.
    #[must_use]
    pub fn state(&self, endpoint: &WebhookEndpoint, users: &WebhookUsers) -> Option<TransportState> {
        let endpoint = endpoint.usable().ok()?;
        let key = endpoint.key(endpoint.user(users));
        let known = self.inner.transports.lock().known(&key);
        known.map(|transport| transport.state())
    }

    /// Sends JSON and gives back the body of a successful answer.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn post(&self, call: WebhookCall<'_>) -> Result<Bytes, CallError> {
        let endpoint = call.endpoint.usable().map_err(CallError::Configuration)?;
        let user = endpoint.user(call.users);
        let failed =
            |reason: String, reset| CallError::Exchange { url: endpoint.address.url.clone(), reason, reset };
        let transport = self.transport(endpoint, user).map_err(|reason| failed(reason, false))?;
        let exchange = Exchange { inner: &self.inner, endpoint, user, transport: &transport, call };
        let answer = exchange.bounded().await.map_err(|reason| match reason {
            Reason::Unanswered(reason) => failed(reason, false),
            Reason::Reset(reason) => failed(reason, true),
            Reason::Broken(reason) => CallError::Broken(reason),
        })?;
        let (code, retry_after) = (answer.status.as_u16(), refusal::retry_after(&answer));
        match code {
            200..=206 if answer.body.is_empty() => {
                Err(CallError::Refused { code, reason: refusal::empty(&answer), retry_after: false })
            }
            200..=206 => Ok(answer.body),
            _ => Err(CallError::Refused { code, reason: refusal::words(&answer), retry_after }),
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
        if let Some(known) = self.inner.transports.lock().used(&key, certificate.as_ref()) {
            return Ok(known);
        }
        // Outside of the lock: others call meanwhile.
        let made = Arc::new(Transport::new(&key, certificate, calls)?);
        Ok(self.inner.transports.lock().insert(key, made))
    }
}

/// One call: the webhook, the credentials, the body and its limits.
#[derive(Clone)]
pub struct WebhookCall<'a> {
    /// Where the webhook is, and how long the call may take.
    pub endpoint: &'a WebhookEndpoint,
    /// As whom it is called.
    pub users: &'a WebhookUsers,
    /// JSON.
    pub body: Bytes,
    /// A longer answer, in bytes, is a failure.
    pub answer_bytes: usize,
}

/// One call on its way.
struct Exchange<'a> {
    inner: &'a Shared,
    endpoint: &'a Endpoint,
    user: Option<&'a Arc<WebhookUser>>,
    transport: &'a Transport,
    call: WebhookCall<'a>,
}

impl Exchange<'_> {
    /// Waits for its turn and sends.
    async fn bounded(&self) -> Result<Fetched, Reason> {
        let deadline = Instant::now() + self.endpoint.timeout;
        let busy = || {
            Reason::Unanswered(format!(
                "{} calls to this address are already in progress",
                self.inner.limits.requests
            ))
        };
        let _place = self.transport.places.try_acquire().map_err(|_| busy())?;
        let turn = timeout_at(deadline, self.transport.calls.acquire()).await;
        let _turn = turn.map_err(|_| busy())?;
        self.to_any_address(deadline).await
    }

    /// Sends to one address after another, until one can be dialed.
    async fn to_any_address(&self, deadline: Instant) -> Result<Fetched, Reason> {
        let connectors = &self.inner.connectors;
        let (fetcher, targets) = match (&self.endpoint.address.place, &self.endpoint.backends) {
            (Place::Url(target), _) => (&connectors.urls, vec![target.clone()]),
            (Place::Service(_), Some(backends)) => (&connectors.services, in_any_order(backends.clone())),
            (Place::Service(service), None) => {
                (&connectors.services, connectors.targets(service).map_err(Reason::Unanswered)?)
            }
        };
        let mut failure = "no address to dial".to_owned();
        let mut dialled = 0;
        for (circuit, target) in self.transport.circuits(&targets).iter().zip(targets) {
            // What is left of the time shows nothing about an address any more.
            if dialled == ADDRESSES || (dialled > 0 && Instant::now() >= deadline) {
                break;
            }
            if !circuit.allows() {
                failure = circuit.last().and_then(|last| last.failed).unwrap_or(failure);
                continue;
            }
            dialled += 1;
            let begun = Instant::now();
            match self.to(fetcher, target, deadline).await {
                Ok(fetched) => {
                    circuit.reached();
                    return Ok(fetched);
                }
                Err(error) => match (reason::of(&error), outcome(&error)) {
                    (reason, Outcome::Connected) => {
                        circuit.reached();
                        return Err(reason);
                    }
                    (
                        Reason::Unanswered(reason) | Reason::Reset(reason) | Reason::Broken(reason),
                        outcome,
                    ) => {
                        // A dial that the deadline of this call has cut short may succeed for the next one.
                        let had_time = begun.elapsed() >= MIN_DIAL || Instant::now() < deadline;
                        if outcome == Outcome::NotConnected && had_time {
                            circuit.failed(reason.clone());
                        }
                        failure = reason;
                    }
                },
            }
        }
        Err(Reason::Unanswered(failure))
    }

    async fn to(
        &self,
        fetcher: &Fetcher,
        target: dial::Target,
        deadline: Instant,
    ) -> Result<Fetched, FetchError> {
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
            max_body: self.call.answer_bytes,
        }
    }
}

/// What a failed exchange shows about its address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The webhook was reached: another address is no better.
    Connected,
    /// The address cannot be dialed.
    NotConnected,
    /// Nothing: there was nothing left to dial with here.
    Local,
}

fn outcome(error: &FetchError) -> Outcome {
    match error {
        FetchError::Dial(error) if error.is_local() => Outcome::Local,
        FetchError::Dial(_) | FetchError::Timeout { progress: Progress::Dialling, .. } => {
            Outcome::NotConnected
        }
        _ => Outcome::Connected,
    }
}

fn in_any_order(mut targets: Vec<Target>) -> Vec<dial::Target> {
    targets.shuffle(&mut rand::rng());
    targets.into_iter().map(|target| dial::Target::new(target.host, target.port)).collect()
}

impl WebhookConnectors {
    /// The addresses of a Service, in any order, so that calls spread.
    fn targets(&self, service: &ServiceReference) -> Result<Vec<dial::Target>, String> {
        self.resolver.resolve(service).map(in_any_order).map_err(|error| error.message)
    }
}
