//! Audit of native callers: records their calls at each stage as the policy requires, as facades do for HTTP requests.
//!
//! Calls that a facade forwards are recorded by the facade, except for histories, whose objects are named only in the messages.
//! Requests that a facade makes on its own account are internal and not recorded.
//! A client receives the end of a response after its last event is processed. Upstream: `WithAudit`,
//! `WithFailedAuthenticationAudit`.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::FutureExt;
use http::HeaderMap;
use portico_audit::Stage;
use portico_auditor::{AUDIT_ID, AuditedRequest, Auditor, CompletionGuard, panic_status};
use portico_kit::header_text::first;
use portico_kit::layer::{LayerFuture, take_ready};
use portico_machinery::{Attributes, RequestInfo, UserInfo};
use portico_proto::rpc_status::to_rpc;
use tonic::Code;
use tonic::body::Body;
use tower::Service;

use super::caller::Caller;
use super::methods::{Access, access};
use super::recorded_body::RecordedBody;
use super::recording::{Recording, audit_id, note_refusal};

/// Suffix of methods that stream until the client cancels.
const LONG_RUNNING: &str = "/Watch";
/// Service whose messages name the objects of a call, and are forwarded by facades without decoding.
const HISTORY_SERVICE: &str = "/portico.history.v1.History/";

/// True if a facade's own event does not identify the objects of a call.
fn is_recorded_here(path: &str) -> bool {
    path.starts_with(HISTORY_SERVICE)
}

/// Audit layer.
#[derive(Clone)]
pub struct Audit<S> {
    auditor: Option<Arc<Auditor>>,
    inner: S,
}

impl<S> Audit<S> {
    /// Wraps `inner`. Without an auditor, calls are not recorded.
    pub(super) fn new(inner: S, auditor: Option<Arc<Auditor>>) -> Self {
        Self { auditor, inner }
    }
}

impl<S> Service<http::Request<Body>> for Audit<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = LayerFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let caller = request.extensions().get::<Caller>();
        let native = caller.is_none_or(|caller| caller.facade_name().is_none());
        let records = native || is_recorded_here(request.uri().path());
        let Some(auditor) = self.auditor.clone().filter(|_| records) else {
            return LayerFuture::from_inner(self.inner.call(request));
        };
        // Methods that are open to everyone, such as health checks, have no caller.
        let user = caller.map_or_else(|| Arc::new(UserInfo::anonymous()), |caller| caller.shared_user());
        let id = audit_id(request.headers());
        let recording = Arc::new(Recording::new(auditor, &request, Some(user), &id));
        if let Some(caller) = request.extensions_mut().get_mut::<Caller>() {
            caller.set_recording(Arc::clone(&recording));
        }
        let inner = take_ready(&mut self.inner);
        LayerFuture::from_boxed(async move {
            let mut response = record_call(recording, request, inner).await?;
            response.headers_mut().entry(AUDIT_ID).or_insert(id);
            Ok(response)
        })
    }
}

async fn record_call<S>(
    recording: Arc<Recording>,
    request: http::Request<Body>,
    mut inner: S,
) -> Result<http::Response<Body>, S::Error>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>>,
{
    let info = path_request(&request);
    let is_long_running = info.path.ends_with(LONG_RUNNING);
    if access(request.uri().path()) != Access::Object
        && let Err(status) = recording.begin(&info).await
    {
        return Ok(to_rpc(&status).into_http());
    }
    let mut underway = ActiveCall::new(&recording, deadline(request.headers()));
    // The state of a panicked call is dropped with it.
    let answer = AssertUnwindSafe(async move { inner.call(request).await }).catch_unwind().await;
    if !recording.is_begun()
        && let Err(status) = recording.begin(&info).await
    {
        return Ok(to_rpc(&status).into_http());
    }
    let completion_guard = underway.end();
    let Some(audited_request) = recording.audited_request() else {
        return answer.unwrap_or_else(|panic| resume_unwind(panic));
    };
    let response = match answer {
        Ok(answer) => answer?,
        Err(panic) => {
            drop(completion_guard.map(|mut completion_guard| completion_guard.disarm()));
            audited_request.set_status(&panic_status(&*panic));
            audited_request.process(Stage::Panic).await;
            resume_unwind(panic);
        }
    };
    let is_refused = note_head(audited_request, response.headers());
    if is_long_running {
        audited_request.process(Stage::ResponseStarted).await;
    }
    if is_refused {
        drop(completion_guard.map(|mut completion_guard| completion_guard.disarm()));
        audited_request.process(Stage::ResponseComplete).await;
        return Ok(response);
    }
    Ok(match completion_guard {
        Some(completion_guard) => response.map(|body| Body::new(RecordedBody::new(body, completion_guard))),
        None => response,
    })
}

/// Call in progress. If the call ends without a response, its last event is sent when this value is dropped.
struct ActiveCall {
    recording: Option<Arc<Recording>>,
    deadline: Option<Instant>,
}

impl ActiveCall {
    fn new(recording: &Arc<Recording>, deadline: Option<Instant>) -> Self {
        Self { recording: Some(Arc::clone(recording)), deadline }
    }

    /// Ends the call with a response. The returned value sends the last event.
    fn end(&mut self) -> Option<CompletionGuard> {
        let recording = self.recording.take()?;
        recording
            .audited_request()
            .map(|audited_request| CompletionGuard::new(Arc::clone(audited_request), None))
    }
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        let Some(recording) = self.recording.take() else { return };
        if let Some(audited_request) = recording.audited_request() {
            drop(CompletionGuard::new(Arc::clone(audited_request), self.deadline));
        }
    }
}

/// Event of a call that is refused before it has a caller, by the policy's rules for calls without a user; `None` if it
/// is not recorded.
pub(super) fn record_refusal(
    auditor: Option<&Arc<Auditor>>,
    request: &http::Request<Body>,
    refusal: &tonic::Status,
) -> Option<Arc<AuditedRequest>> {
    let recording = Recording::new(Arc::clone(auditor?), request, None, &audit_id(request.headers()));
    let audited_request = recording.create_event(&path_request(request))?;
    note_refusal(audited_request, refusal);
    Some(Arc::clone(audited_request))
}

/// Describes a call by its path.
fn path_request(request: &http::Request<Body>) -> RequestInfo {
    let path = format!("/grpc{}", request.uri().path());
    Attributes::path(Arc::<UserInfo>::default(), "post", &path).request.as_ref().clone()
}

/// Records the status in the head of a response. Returns true if the response has no body.
fn note_head(audited_request: &AuditedRequest, headers: &HeaderMap) -> bool {
    match tonic::Status::from_header_map(headers) {
        Some(status) if status.code() != Code::Ok => {
            if !audited_request.has_status() {
                note_refusal(audited_request, &status);
            }
            true
        }
        code => {
            if !audited_request.has_status() {
                audited_request.set_code(200);
            }
            code.is_some()
        }
    }
}

/// Returns the deadline of the client (`grpc-timeout`: at most eight digits and a unit).
fn deadline(headers: &HeaderMap) -> Option<Instant> {
    let text = first(headers, "grpc-timeout");
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    let time = match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    };
    Instant::now().checked_add(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_a_number_and_a_unit() {
        for (text, is_one) in [("10S", true), ("99999999H", true), ("5", false), ("", false), ("1x", false)] {
            let headers = HeaderMap::from_iter([(
                http::header::HeaderName::from_static("grpc-timeout"),
                http::HeaderValue::from_static(text),
            )]);
            assert_eq!(deadline(&headers).is_some(), is_one, "{text}");
        }
    }
}
