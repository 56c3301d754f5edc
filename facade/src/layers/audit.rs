//! Audit: records an event at each stage of a request, as the audit policy requires.
//!
//! A response that is complete in memory is sent after its last event. For any other one the last event follows the last byte,
//! or the disconnection of the client. Upstream: `WithAudit`, and `WithFailedAuthenticationAudit` for requests that fail
//! the authentication.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{FutureExt, poll};
use http::header::USER_AGENT;
use http_body::{Frame, SizeHint};
use jiff::{SignedDuration, Timestamp};
use portico_audit::{AuditConfig, Event, Level, ObjectReference, Stage, source_ips};
use portico_kit::layer::LayerFuture;
use portico_kit::metrics::Histogram;
use portico_machinery::UserInfo;
use portico_proxy::Tunnel;
use tower::Service;

use crate::body::{Body, BoxError};
use crate::handler::{Handler, HandlerResult};
use crate::request::{Caller, Request, RequestView, Response};
use crate::respond::{self, ResponseStatus};
use portico_auditor::{AuditedRequest, Auditor, CompletionGuard, Latency, panic_status};

/// Settings and state of the audit layer.
#[derive(Clone)]
pub struct AuditState {
    /// Evaluates the policy and sends events to the backends.
    pub auditor: Arc<Auditor>,
    /// `apiserver_request_filter_duration_seconds{filter="audit"}`
    pub duration: Histogram,
}

/// Service of the audit layer.
#[derive(Clone)]
pub struct Audit<S> {
    state: AuditState,
    inner: S,
}

impl<S> Audit<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, state: AuditState) -> Self {
        Self { state, inner }
    }
}

impl<S: Handler> Service<Request> for Audit<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = LayerFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    /// Boxes only requests that are recorded.
    fn call(&mut self, request: Request) -> Self::Future {
        let begin = Instant::now();
        let AuditState { auditor, duration } = &self.state;
        let caller = request.extension::<Caller>().map(|Caller(user)| user.clone());
        let config = auditor.evaluate(caller.as_deref(), request.info());
        if config.level == Level::None {
            duration.observe(begin.elapsed().as_secs_f64());
            return LayerFuture::from_inner(self.inner.call(request));
        }
        let event = new_event(&request, config, caller);
        let audited = Arc::new(AuditedRequest::new(Arc::clone(auditor), config, event));
        if let Some(took) = request.record().authentication_took.get() {
            audited.record_latency(Latency::Authentication, *took);
        }
        // Only this layer sets it.
        let _ = request.record().audited.set(Arc::clone(&audited));
        let (duration, inner) = (duration.clone(), self.inner.clone());
        LayerFuture::from_boxed(async move {
            if !audited.process_received().await {
                audited.count_rejected();
                return Ok(respond::internal(&request, "failed to store audit event"));
            }
            duration.observe(begin.elapsed().as_secs_f64());
            call_audited(audited, request, inner).await
        })
    }
}

async fn call_audited<S: Handler>(
    audited: Arc<AuditedRequest>,
    request: Request,
    mut inner: S,
) -> HandlerResult {
    let is_long_running = request.target().long_running;
    let mut completion = CompletionGuard::new(Arc::clone(&audited), request.record().deadline());
    // State that a panic leaves inconsistent is dropped with the request.
    let mut answer = pin!(AssertUnwindSafe(async move { inner.call(request).await }).catch_unwind());
    let answer = match poll!(answer.as_mut()) {
        Poll::Ready(answer) => answer,
        Poll::Pending => {
            audited.write_deferred().await;
            answer.await
        }
    };
    let response = match answer {
        Ok(answer) => answer?,
        Err(panic) => {
            completion.disarm();
            audited.set_status(&panic_status(&*panic));
            audited.process(Stage::Panic).await;
            resume_unwind(panic);
        }
    };
    record_response(&audited, &response);
    completion.set_responded();
    if is_long_running {
        audited.process(Stage::ResponseStarted).await;
    }
    if let Some(tunnel) = response.extensions().get::<Tunnel>() {
        audited.write_deferred().await;
        tunnel.keep(completion);
        return Ok(response);
    }
    if response.body().is_full() {
        completion.disarm();
        audited.process(Stage::ResponseComplete).await;
        return Ok(response);
    }
    audited.write_deferred().await;
    Ok(response.map(|body| Body::streamed(AuditedBody::new(body, audited, completion))))
}

/// Creates the event of a request that is refused before the audit layer, by the policy's rules for requests without a user.
/// `None` if the request is not recorded.
pub fn refusal_event(
    auditor: Option<&Arc<Auditor>>,
    request: &Request,
    refusal: &Response,
) -> Option<AuditedRequest> {
    let auditor = auditor?;
    let config = auditor.evaluate(None, request.info());
    if config.level == Level::None {
        return None;
    }
    let audited = AuditedRequest::new(Arc::clone(auditor), config, new_event(request, config, None));
    record_response(&audited, refusal);
    Some(audited)
}

fn new_event(request: &Request, config: AuditConfig, user: Option<Arc<UserInfo>>) -> Event {
    let elapsed = SignedDuration::try_from(request.received().elapsed()).unwrap_or_default();
    let received = Timestamp::now().saturating_sub(elapsed).unwrap_or_default();
    let audit_id = String::from_utf8_lossy(request.audit_id().as_bytes());
    let mut event = Event::new(config.level, audit_id, received);
    request.uri().path_and_query().map_or("", |uri| uri.as_str()).clone_into(&mut event.request_uri);
    event.verb.clone_from(&request.info().verb);
    event.user = user.unwrap_or_default();
    let peer = request.connection().peer.ip();
    event.source_ips = source_ips(request.header("x-forwarded-for"), request.header("x-real-ip"), peer);
    event.set_user_agent(request.headers().get(USER_AGENT).map_or(&[], |agent| agent.as_bytes()));
    event.object_ref = ObjectReference::from_request(request.info());
    event
}

fn record_response(audited: &AuditedRequest, response: &Response) {
    if let Some(ResponseStatus(status)) = response.extensions().get() {
        audited.set_status(status);
        audited.set_response_object(status.to_json().into());
    }
    audited.set_code(response.status().as_u16());
}

/// A body that is followed by the last event.
struct AuditedBody {
    body: Body,
    audited: Arc<AuditedRequest>,
    /// Time at which the newest frame was passed on for writing; hyper polls for the next one when there is room for it.
    passed_at: Option<Instant>,
    writing: Duration,
    /// Dropped after the other fields, which record the end of the body.
    _completion: CompletionGuard,
}

impl AuditedBody {
    fn new(body: Body, audited: Arc<AuditedRequest>, completion: CompletionGuard) -> Self {
        Self { body, audited, passed_at: None, writing: Duration::ZERO, _completion: completion }
    }

    fn add_writing_time(&mut self) {
        self.writing += self.passed_at.take().map_or(Duration::ZERO, |passed_at| passed_at.elapsed());
    }
}

impl Drop for AuditedBody {
    fn drop(&mut self) {
        self.add_writing_time();
        self.audited.record_latency(Latency::ResponseWrite, self.writing);
    }
}

impl http_body::Body for AuditedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        this.add_writing_time();
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(Some(_))) {
            this.passed_at = Some(Instant::now());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
