//! Asking webhooks: a POST over TLS to whom an object names, by URL or by Service, as upstream's webhook clients do it
//! (6.2): HTTP/1.1, the Service's name as TLS server name, no client certificate, one deadline over everything.
//!
//! Transports are shared by content: webhooks that are at the same place behind the same CA share connections and a bound
//! on calls at a time. It must not know what is asked.

mod address;
mod config;
mod refusal;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use parking_lot::Mutex;
use portico_kit::dial;
use portico_kit::fetch::{FetchError, FetchRequest, FetchTarget, Fetched, Fetcher};
use portico_machinery::route::{ResolveError, ServiceReference, Target};
use rand::seq::SliceRandom;
use tokio::time::{Instant, timeout_at};

pub use config::{ClientConfig, WebhookService};

use address::{Address, Place};
use transport::{Transport, Transports};

/// How many addresses of a Service are tried when some cannot be dialled.
const ADDRESSES: usize = 3;

/// Somebody who knows where Services are.
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
    /// Requests at a time to one place; more wait, which counts against their deadline.
    pub requests: usize,
    /// A longer answer, in bytes, is a failure.
    pub answer_bytes: usize,
}

impl Default for WebhookLimits {
    fn default() -> Self {
        Self { requests: 64, answer_bytes: 64 << 20 }
    }
}

/// Why a webhook gave no answer, in upstream's words as far as they say why.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The configuration cannot be used.
    #[error("{0}")]
    Configuration(String),
    /// Nothing came back.
    #[error("Post {url:?}: {reason}")]
    Exchange {
        /// Whom.
        url: String,
        /// At which stage it ended, and how.
        reason: String,
    },
    /// It answered, but not with success.
    #[error("{reason}")]
    Refused {
        /// Its HTTP code.
        code: u16,
        /// What it says.
        reason: String,
    },
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

    /// Sends JSON and gives back the body of a successful answer.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn post(
        &self,
        config: &ClientConfig,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, CallError> {
        let address = Address::of(config, timeout).map_err(CallError::Configuration)?;
        let deadline = Instant::now() + timeout;
        let failed = |reason: String| CallError::Exchange { url: address.url.clone(), reason };
        let late = || failed(format!("no answer within {}", portico_gostd::time::format_duration(timeout)));
        let transport = self.transport(config, &address.place).map_err(&failed)?;
        let permit = timeout_at(deadline, transport.calls.acquire()).await;
        let busy = || failed(format!("{} calls to it are under way already", self.inner.limits.requests));
        let permit = permit.map_err(|_| busy())?;
        let answered = timeout_at(deadline, self.exchange(&address, &transport, body, timeout)).await;
        drop(permit);
        let answer = answered.map_err(|_| late())?.map_err(&failed)?;
        let code = answer.status.as_u16();
        match code {
            200..=206 if answer.body.is_empty() => {
                Err(CallError::Refused { code, reason: refusal::empty(&answer) })
            }
            200..=206 => Ok(answer.body),
            _ => Err(CallError::Refused { code, reason: refusal::words(&answer) }),
        }
    }

    fn transport(&self, config: &ClientConfig, place: &Place) -> Result<Arc<Transport>, String> {
        let calls = self.inner.limits.requests;
        self.inner.transports.lock().get(place, &config.ca_bundle, calls)
    }

    /// Sends to one address after another, until one can be dialled.
    async fn exchange(
        &self,
        address: &Address,
        transport: &Transport,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Fetched, String> {
        let connectors = &self.inner.connectors;
        let (fetcher, targets) = match &address.place {
            Place::Url(target) => (&connectors.urls, vec![target.clone()]),
            Place::Service(service) => (&connectors.services, connectors.targets(service)?),
        };
        let mut failure = "there is no address to dial".to_owned();
        for target in targets {
            let to =
                FetchTarget { target, tls: Some(transport.tls.clone()), host: Some(address.host.clone()) };
            let request = self.request(address, body.clone(), timeout);
            match fetcher.send(&to, &request).await {
                Ok(fetched) => return Ok(fetched),
                Err(error @ FetchError::Dial(_)) => failure = error.to_string(),
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(failure)
    }

    fn request(&self, address: &Address, body: Bytes, timeout: Duration) -> FetchRequest {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, */*"));
        FetchRequest {
            method: Method::POST,
            path: address.path.clone(),
            headers,
            timeout,
            body,
            max_body: self.inner.limits.answer_bytes,
        }
    }
}

impl WebhookConnectors {
    /// Some addresses of a Service, in any order, so that calls spread.
    fn targets(&self, service: &ServiceReference) -> Result<Vec<dial::Target>, String> {
        let mut found = self.resolver.resolve(service).map_err(|error| error.message)?;
        found.shuffle(&mut rand::rng());
        found.truncate(ADDRESSES);
        Ok(found.into_iter().map(|target| dial::Target::new(target.host, target.port)).collect())
    }
}
