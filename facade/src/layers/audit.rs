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
use portico_kit::layer::Step;
use portico_kit::metrics::Histogram;
use portico_machinery::UserInfo;
use portico_proxy::Tunnel;
use tower::Service;

use crate::body::{Body, BoxError};
use crate::handler::{Answer, Handler};
use crate::request::{Caller, Request, RequestView, Response};
use crate::respond::{self, Answered};
use portico_auditor::{Audited, Auditor, Ending, Latency, panicked};

/// Settings and state of the audit layer.
#[derive(Clone)]
pub struct Audits {
    /// Evaluates the policy and sends events to the backends.
    pub auditor: Arc<Auditor>,
    /// `apiserver_request_filter_duration_seconds{filter="audit"}`
    pub duration: Histogram,
}

/// Service of the audit layer.
#[derive(Clone)]
pub struct Audit<S> {
    audits: Audits,
    inner: S,
}

impl<S> Audit<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, audits: Audits) -> Self {
        Self { audits, inner }
    }
}

impl<S: Handler> Service<Request> for Audit<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = Step<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    /// Boxes only requests that are recorded.
    fn call(&mut self, request: Request) -> Self::Future {
        let begin = Instant::now();
        let Audits { auditor, duration } = &self.audits;
        let caller = request.found::<Caller>().map(|Caller(user)| user.clone());
        let config = auditor.evaluate(caller.as_deref(), request.info());
        if config.level == Level::None {
            duration.observe(begin.elapsed().as_secs_f64());
            return Step::passed(self.inner.call(request));
        }
        let event = event_of(&request, config, caller);
        let audited = Arc::new(Audited::new(Arc::clone(auditor), config, event));
        if let Some(took) = request.record().authentication_took.get() {
            audited.took(Latency::Authentication, *took);
        }
        // Only this layer sets it.
        let _ = request.record().audited.set(Arc::clone(&audited));
        let (duration, inner) = (duration.clone(), self.inner.clone());
        Step::waiting(async move {
            if !audited.received().await {
                audited.rejected();
                return Ok(respond::internal(&request, "failed to store audit event"));
            }
            duration.observe(begin.elapsed().as_secs_f64());
            recorded(audited, request, inner).await
        })
    }
}

async fn recorded<S: Handler>(audited: Arc<Audited>, request: Request, mut inner: S) -> Answer {
    let is_long_running = request.target().long_running;
    let mut ending = Ending::new(Arc::clone(&audited), request.record().deadline());
    // State that a panic leaves inconsistent is dropped with the request.
    let mut answer = pin!(AssertUnwindSafe(async move { inner.call(request).await }).catch_unwind());
    let answer = match poll!(answer.as_mut()) {
        Poll::Ready(answer) => answer,
        Poll::Pending => {
            audited.write_held().await;
            answer.await
        }
    };
    let response = match answer {
        Ok(answer) => answer?,
        Err(panic) => {
            ending.disarm();
            audited.set_status(&panicked(&*panic));
            audited.process(Stage::Panic).await;
            resume_unwind(panic);
        }
    };
    note_response(&audited, &response);
    ending.answered();
    if is_long_running {
        audited.process(Stage::ResponseStarted).await;
    }
    if let Some(tunnel) = response.extensions().get::<Tunnel>() {
        audited.write_held().await;
        tunnel.keep(ending);
        return Ok(response);
    }
    if response.body().is_whole() {
        ending.disarm();
        audited.process(Stage::ResponseComplete).await;
        return Ok(response);
    }
    audited.write_held().await;
    Ok(response.map(|body| Body::streamed(UntilOut::new(body, audited, ending))))
}

/// Creates the event of a request that is refused before the audit layer, by the policy's rules for requests without a user.
/// `None` if the request is not recorded.
pub fn refused(auditor: Option<&Arc<Auditor>>, request: &Request, refusal: &Response) -> Option<Audited> {
    let auditor = auditor?;
    let config = auditor.evaluate(None, request.info());
    if config.level == Level::None {
        return None;
    }
    let audited = Audited::new(Arc::clone(auditor), config, event_of(request, config, None));
    note_response(&audited, refusal);
    Some(audited)
}

fn event_of(request: &Request, config: AuditConfig, user: Option<Arc<UserInfo>>) -> Event {
    let waited = SignedDuration::try_from(request.received().elapsed()).unwrap_or_default();
    let received = Timestamp::now().saturating_sub(waited).unwrap_or_default();
    let audit_id = String::from_utf8_lossy(request.audit_id().as_bytes());
    let mut event = Event::new(config.level, audit_id, received);
    request.uri().path_and_query().map_or("", |uri| uri.as_str()).clone_into(&mut event.request_uri);
    event.verb.clone_from(&request.info().verb);
    event.user = user.unwrap_or_default();
    let peer = request.connection().peer.ip();
    event.source_ips = source_ips(request.header("x-forwarded-for"), request.header("x-real-ip"), peer);
    event.set_user_agent(request.headers().get(USER_AGENT).map_or(&[], |agent| agent.as_bytes()));
    event.object_ref = ObjectReference::of(request.info());
    event
}

fn note_response(audited: &Audited, response: &Response) {
    if let Some(Answered(status)) = response.extensions().get() {
        audited.set_status(status);
        audited.set_response_object(status.to_json().into());
    }
    audited.set_code(response.status().as_u16());
}

/// A body that is followed by the last event.
struct UntilOut {
    body: Body,
    audited: Arc<Audited>,
    /// Time at which the newest frame was passed on for writing; hyper polls for the next one when there is room for it.
    given: Option<Instant>,
    writing: Duration,
    /// Dropped after the other fields, which record the end of the body.
    _ending: Ending,
}

impl UntilOut {
    fn new(body: Body, audited: Arc<Audited>, ending: Ending) -> Self {
        Self { body, audited, given: None, writing: Duration::ZERO, _ending: ending }
    }

    fn written(&mut self) {
        self.writing += self.given.take().map_or(Duration::ZERO, |given| given.elapsed());
    }
}

impl Drop for UntilOut {
    fn drop(&mut self) {
        self.written();
        self.audited.took(Latency::ResponseWrite, self.writing);
    }
}

impl http_body::Body for UntilOut {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        this.written();
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(Some(_))) {
            this.given = Some(Instant::now());
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
