//! The decisions about one request, in upstream's order, and its way there and back.

use std::sync::Arc;
use std::time::Duration;

use http::header::LOCATION;
use http::request::Parts;
use http::uri::Uri;
use http::{HeaderMap, Request, Response, StatusCode, Version};
use portico_machinery::RequestInfo;
use portico_machinery::route::{Availability, Backend};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use crate::body::{ProxyBody, RequestBody};
use crate::context::ProxyContext;
use crate::headers::{self, Upgrade};
use crate::location;
use crate::metrics::ProxyMetrics;
use crate::observation::Observation;
use crate::refusal::{Refusal, Stage, respond};
use crate::settings::ProxySettings;
use crate::transport::{Answer, Carrier, Http1Body, Http2Body, Permit, SendError, Shared, Transports};
use crate::upgrade;
use crate::upstream::Upstream;

/// How often idle connections and transports are looked at.
const SWEEP: Duration = Duration::from_secs(10);

/// How many headers we add besides the caller's identity.
const OWN_HEADERS: usize = 6;

/// Takes requests to backends. Clones share everything.
#[derive(Clone)]
pub struct Proxy {
    shared: Arc<Shared>,
    transports: Arc<Transports>,
}

impl Proxy {
    /// A proxy, with its sweeper and its watch on the client certificate running in the settings' tasks.
    pub fn new(settings: ProxySettings, metrics: ProxyMetrics) -> Self {
        let ProxySettings { connector, client_cert, tasks, limits } = settings;
        let shared = Arc::new(Shared::new(connector, limits, tasks, metrics, client_cert));
        let this = Self { shared, transports: Arc::default() };
        let tasks = &this.shared.tasks;
        tasks.spawn_until_cancelled("proxy-client-certificate", this.shared.clone().follow_client_cert());
        let (shared, transports) = (this.shared.clone(), this.transports.clone());
        tasks.spawn_until_cancelled("proxy-sweeper", async move {
            let mut ticks = interval(SWEEP);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                transports.sweep(&shared);
            }
        });
        this
    }

    /// What this facade saw of its backends.
    pub fn observations(&self) -> Vec<Observation> {
        self.transports.observations()
    }

    /// Answers a request: with the backend's answer, or with a Status.
    pub async fn handle<B: Into<RequestBody>>(
        &self,
        upstream: &Upstream,
        request: Request<B>,
        context: ProxyContext<'_>,
    ) -> Response<ProxyBody> {
        match self.try_handle(upstream, request, context).await {
            Ok(response) => response,
            Err(refusal) => respond(&refusal, upstream.route(), self.shared.limits.plain_text_errors),
        }
    }

    /// The same for a caller that turns refusals into responses itself.
    ///
    /// # Errors
    /// A [`Refusal`] whenever the backend's answer is not what the client gets.
    pub async fn try_handle<B: Into<RequestBody>>(
        &self,
        upstream: &Upstream,
        request: Request<B>,
        context: ProxyContext<'_>,
    ) -> Result<Response<ProxyBody>, Refusal> {
        let backend = upstream.route().backend.as_ref().ok_or(Refusal::NoBackend)?;
        check_available(&upstream.route().available)?;
        let transport = upstream
            .transport(|backend, ca| self.transports.get(&self.shared, backend, ca))
            .ok_or(Refusal::NoBackend)?
            .map_err(|error| Refusal::Transport(error.to_string()))?;
        let identity = context.identity.ok_or(Refusal::MissingUser)?;
        check_resolved(backend)?;
        let permit = transport.admit().map_err(Refusal::Busy)?;

        let (mut parts, body) = request.into_parts();
        let upgrade = headers::requested_upgrade(&parts.headers);
        parts.uri = Uri::from(location::path_and_query(&parts.uri)?);
        parts.version = Version::HTTP_11;
        headers::strip_request(&mut parts.headers);
        headers::set_identity(&mut parts.headers, identity, OWN_HEADERS)?;
        headers::forward(&mut parts.headers, context.client, parts.uri.path(), context.audit_id);
        match upgrade {
            Upgrade::No => self.forward(permit, parts, body.into(), context).await,
            Upgrade::Refused(why) => Err(Refusal::UpgradeRefused(why)),
            Upgrade::To(_) if !context.request_info.is_resource_request => {
                Err(Refusal::UpgradeRefused("an upgrade is not passed on outside of resources".to_owned()))
            }
            Upgrade::To(protocol) => {
                upgrade::upgrade(&self.shared, permit, parts, body.into(), protocol, context.deadline).await
            }
        }
    }

    async fn forward(
        &self,
        permit: Permit,
        mut parts: Parts,
        body: RequestBody,
        context: ProxyContext<'_>,
    ) -> Result<Response<ProxyBody>, Refusal> {
        parts.extensions.clear();
        let request = Request::from_parts(parts, body);
        let deadline = self.deadline(&context);
        let answer = match deadline {
            None => permit.transport().send(request).await,
            Some((at, discovery)) => timeout_at(at, permit.transport().send(request))
                .await
                .map_err(|_| Refusal::Deadline { discovery })?,
        };
        self.answer(permit, answer?, deadline.map(|(at, _)| at))
    }

    /// The sooner of the request's deadline and, on a discovery path, discovery's; and whether it is the latter.
    fn deadline(&self, context: &ProxyContext<'_>) -> Option<(Instant, bool)> {
        let request = context.deadline.map(|at| (at, false));
        if !is_discovery(context.request_info) {
            return request;
        }
        let discovery = (Instant::now() + self.shared.limits.discovery_deadline, true);
        Some(request.filter(|request| request.0 < discovery.0).unwrap_or(discovery))
    }

    fn answer(
        &self,
        permit: Permit,
        answer: Answer,
        deadline: Option<Instant>,
    ) -> Result<Response<ProxyBody>, Refusal> {
        let Answer { mut head, carrier, target } = answer;
        check_status(head.status, &head.headers, self.shared.limits.reject_redirects)?;
        headers::clean_response(&mut head.headers, permit.transport().authority(target));
        head.version = Version::HTTP_11;
        let mut body = match carrier {
            Carrier::Http1(decoder, connection) => {
                ProxyBody::http1(Http1Body::new(decoder, connection, permit, Some(target)))
            }
            Carrier::Http2(incoming, stream) => ProxyBody::http2(Http2Body::new(incoming, stream, permit)),
        };
        if let Some(deadline) = deadline {
            body = body.until(deadline);
        }
        Ok(Response::from_parts(head, body))
    }
}

fn check_available(available: &Availability) -> Result<(), Refusal> {
    match available {
        Availability { ok: true, .. } => Ok(()),
        Availability { reason, .. } if reason.is_empty() => Err(Refusal::Unknown),
        Availability { reason, message, .. } => {
            Err(Refusal::Unavailable { reason: reason.clone(), message: message.clone() })
        }
    }
}

fn check_resolved(backend: &Backend) -> Result<(), Refusal> {
    match &backend.resolve_error {
        Some(error) => {
            Err(Refusal::Unresolved { reason: error.reason.clone(), message: error.message.clone() })
        }
        None if backend.targets.is_empty() => Err(Refusal::Unresolved {
            reason: "MissingEndpoints".to_owned(),
            message: "the service resolves to no address".to_owned(),
        }),
        None => Ok(()),
    }
}

/// A redirect would make a client send its credentials elsewhere; a 101 was not asked for.
fn check_status(status: StatusCode, headers: &HeaderMap, reject_redirects: bool) -> Result<(), Refusal> {
    if status == StatusCode::SWITCHING_PROTOCOLS {
        let message = "the backend switched the protocol without being asked".to_owned();
        return Err(Refusal::Unreachable { stage: Stage::Http, message });
    }
    if reject_redirects && status.is_redirection() && headers.contains_key(LOCATION) {
        return Err(Refusal::Redirect);
    }
    Ok(())
}

/// `/apis/<group>/<version>`, with or without slashes around.
fn is_discovery(info: &RequestInfo) -> bool {
    !info.is_resource_request && info.path.trim_matches('/').split('/').count() == 3
}

impl From<SendError> for Refusal {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Dial { stage, message } => Self::Unreachable { stage, message },
            SendError::Open { stage, message, failures } => Self::CircuitOpen { stage, message, failures },
            SendError::Http(message) => Self::Unreachable { stage: Stage::Http, message },
            SendError::Body(status) => Self::Body(status),
        }
    }
}
