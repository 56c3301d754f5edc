//! Handling of one request: the checks, in upstream's order, and the exchange with the backend.

use std::sync::Arc;
use std::time::Duration;

use http::header::LOCATION;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use hyper::upgrade::OnUpgrade;
use portico_kit::request_trace::RequestTrace;
use portico_machinery::RequestInfo;
use portico_machinery::route::{Availability, Backend};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use crate::body::ProxyBody;
use crate::context::ProxyContext;
use crate::headers::{self, ProxyHeaders, Upgrade};
use crate::metrics::ProxyMetrics;
use crate::mirror::Mirror;
use crate::observation::Observation;
use crate::outgoing_request::OutgoingRequest;
use crate::refusal::Refusal;
use crate::request_body::RequestBody;
use crate::respond::respond;
use crate::route_entry::RouteEntry;
use crate::settings::ProxySettings;
use crate::stage::Stage;
use crate::transport::{
    BackendResponse, ClientCertificate, Permit, ResponseBody, SendError, Shared, TransportKey, Transports,
    UsageMetrics,
};
use crate::upgrade;

/// Interval at which idle connections and transports are checked.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// A request that passed all checks and can be sent.
struct AdmittedRequest<'a> {
    permit: Permit,
    request: OutgoingRequest<'a>,
    /// New protocol and the client's connection, if the request is an upgrade.
    upgrade: Option<(HeaderValue, Option<OnUpgrade>)>,
}

/// Forwards requests to backends. Clones share all state.
#[derive(Clone)]
pub struct Proxy {
    pub(crate) shared: Arc<Shared>,
    pub(crate) transports: Arc<Transports>,
}

impl Proxy {
    /// Creates a proxy; its sweeper and its watch on the client certificate run in the settings' tasks.
    pub fn new(settings: ProxySettings, metrics: ProxyMetrics) -> Self {
        let this = Self { shared: Arc::new(Shared::new(settings, metrics)), transports: Arc::default() };
        UsageMetrics::register(&this.shared.metrics.registry, Arc::downgrade(&this.transports));
        let tasks = &this.shared.tasks;
        for (name, certificate) in [
            ("proxy-client-certificate", ClientCertificate::FrontProxy),
            ("proxy-kubelet-certificate", ClientCertificate::Kubelet),
        ] {
            tasks.spawn_until_cancelled(name, this.shared.clone().follow_client_cert(certificate));
        }
        let (shared, transports) = (this.shared.clone(), this.transports.clone());
        tasks.spawn_until_cancelled("proxy-sweeper", async move {
            let mut ticks = interval(SWEEP_INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                transports.sweep(&shared);
            }
        });
        this
    }

    /// Returns the last outcome of each backend, as seen by this facade.
    pub fn observations(&self) -> Vec<Observation> {
        self.transports.observations()
    }

    /// Handles a request; returns the backend's response, or a Status.
    pub fn handle<'a, B: Into<RequestBody>>(
        &'a self,
        upstream: &'a RouteEntry,
        request: Request<B>,
        context: ProxyContext<'a>,
    ) -> impl Future<Output = Response<ProxyBody>> + Send + use<'a, B> {
        // Outside of the future, whose size includes everything that it holds across an await.
        let admitted = self.admit(upstream, request, &context);
        async move {
            let answered = match admitted {
                Ok(AdmittedRequest { permit, request, upgrade: None }) => {
                    self.forward(permit, request, &context).await
                }
                Ok(AdmittedRequest { permit, request, upgrade: Some((protocol, client)) }) => {
                    let deadline = context.deadline;
                    let upgraded =
                        upgrade::upgrade(&self.shared, permit, request, client, protocol, deadline, None);
                    Box::pin(upgraded).await
                }
                Err(refusal) => Err(refusal),
            };
            answered.unwrap_or_else(|refusal| {
                if let Some(trace) = context.trace {
                    trace.record_refused(refusal.trace_stage(), refusal.to_string());
                }
                respond(&refusal, upstream.route(), self.shared.limits.plain_text_errors)
            })
        }
    }

    /// Makes the checks that precede sending.
    fn admit<'a, B: Into<RequestBody>>(
        &self,
        upstream: &RouteEntry,
        request: Request<B>,
        context: &ProxyContext<'a>,
    ) -> Result<AdmittedRequest<'a>, Refusal> {
        let backend = upstream.route().backend.as_ref().ok_or(Refusal::NoBackend)?;
        check_available(&upstream.route().available)?;
        let transport = upstream
            .transport(|backend, ca| {
                let key = TransportKey::to_backend(backend, &self.shared.limits);
                let counts = upstream.counts(|| self.transports.counts.get_or_create(&backend.service));
                self.transports.get(&self.shared, key, Some(counts), ca)
            })
            .ok_or(Refusal::NoBackend)?
            .map_err(|error| Refusal::Transport(error.to_string()))?;
        let identity = context.identity.ok_or(Refusal::MissingUser)?;
        check_resolved(backend)?;
        let permit = transport.admit().map_err(Refusal::Busy)?;

        let (mut parts, body) = request.into_parts();
        let upgrade = headers::requested_upgrade(&parts.headers);
        let client = parts.extensions.remove();
        let proxy_headers = ProxyHeaders::new(identity, context.client, context.audit_id)?;
        let mut request = OutgoingRequest::new(parts, body.into(), proxy_headers)?;
        let to = match upgrade {
            Upgrade::None => None,
            Upgrade::Refused(why) => return Err(Refusal::UpgradeRefused(why)),
            Upgrade::To(_) if !context.request_info.is_resource_request => {
                let why = "an upgrade is not passed on outside of resources".to_owned();
                return Err(Refusal::UpgradeRefused(why));
            }
            Upgrade::To(protocol) => Some((protocol, client)),
        };
        request.trace = context.trace.cloned();
        // Requests without a deadline and traced requests are not copied.
        let is_copied = to.is_none() && context.deadline.is_some() && context.trace.is_none();
        if backend.policy.mirror.is_some() && is_copied {
            self.mirror(upstream, &mut request);
        }
        Ok(AdmittedRequest { permit, request, upgrade: to })
    }

    /// Copies the request to the mirror, if the policy selects the request.
    fn mirror(&self, upstream: &RouteEntry, request: &mut OutgoingRequest<'_>) {
        let (shared, transports) = (&self.shared, &self.transports);
        if let Some(mirror) = upstream.mirror(|route, ca| Mirror::of(route, ca, shared, transports)) {
            mirror.copy(request, shared);
        }
    }

    async fn forward(
        &self,
        permit: Permit,
        mut request: OutgoingRequest<'_>,
        context: &ProxyContext<'_>,
    ) -> Result<Response<ProxyBody>, Refusal> {
        let deadline = self.deadline(context);
        if let Some(trace) = context.trace.filter(|trace| !trace.should_send()) {
            return Box::pin(connect_only(permit, trace)).await;
        }
        let begin = Instant::now();
        let sending = permit.transport().send(&mut request);
        let answer = match deadline {
            None => sending.await,
            Some((at, discovery)) => {
                timeout_at(at, sending).await.map_err(|_| Refusal::Deadline { discovery })?
            }
        };
        let answer = answer?;
        if let Some(trace) = context.trace {
            let (status, begin) = (answer.head.status, begin.into_std());
            match status.is_client_error() || status.is_server_error() {
                true => trace.record_failed("response", begin, status.to_string()),
                false => trace.record_passed("response", begin, status.to_string()),
            }
        }
        self.finish(permit, answer, deadline.map(|(at, _)| at))
    }

    /// Returns the earlier of the request's deadline and, on a discovery path, the discovery deadline; the boolean is true for
    /// the latter.
    fn deadline(&self, context: &ProxyContext<'_>) -> Option<(Instant, bool)> {
        let request = context.deadline.map(|at| (at, false));
        if !is_discovery(context.request_info) {
            return request;
        }
        let discovery = (Instant::now() + self.shared.limits.discovery_deadline, true);
        Some(request.filter(|request| request.0 < discovery.0).unwrap_or(discovery))
    }

    fn finish(
        &self,
        permit: Permit,
        answer: BackendResponse,
        deadline: Option<Instant>,
    ) -> Result<Response<ProxyBody>, Refusal> {
        let BackendResponse { mut head, body, carrier, target } = answer;
        check_status(head.status, &head.headers, self.shared.limits.reject_redirects)?;
        headers::clean_response(&mut head.headers, permit.transport().authority(target));
        head.version = Version::HTTP_11;
        let mut body = ProxyBody::from(ResponseBody::new(body, carrier, permit, Some(target)));
        if let Some(deadline) = deadline {
            body = body.with_deadline(deadline);
        }
        Ok(Response::from_parts(head, body))
    }
}

/// Opens or takes a connection as a request would, and sends nothing.
async fn connect_only(permit: Permit, trace: &RequestTrace) -> Result<Response<ProxyBody>, Refusal> {
    permit.transport().connect_only(trace).await?;
    trace.stop("not sent to the backend");
    Ok(Response::new(ProxyBody::empty()))
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

/// Refuses redirects, by which a client would send its credentials to another server, and unexpected 101 responses.
fn check_status(status: StatusCode, headers: &HeaderMap, reject_redirects: bool) -> Result<(), Refusal> {
    if status == StatusCode::SWITCHING_PROTOCOLS {
        let message = "the backend switched protocols without an upgrade request".to_owned();
        return Err(Refusal::Unreachable { stage: Stage::Http, message });
    }
    if reject_redirects && status.is_redirection() && headers.contains_key(LOCATION) {
        return Err(Refusal::Redirect);
    }
    Ok(())
}

/// Returns true for `/apis/<group>/<version>`, with or without surrounding slashes.
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
