//! Local APIs: requests that the control service serves, sent over gRPC with the caller's identity.
//!
//! The control service decodes, decides and encodes; this module limits bodies, streams responses, and reports a lost control
//! service as a Status. Does not depend on any kind.

mod audit_record;
mod body;
mod connect;
mod control_call;
mod initial_events;
mod metrics;
mod pump;
mod response;
mod resumable_list;
mod resumable_watch;
mod resume_query;
mod watch_buffers;
mod websocket;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::request::Parts;
use http::{Method, StatusCode};
use portico_gostd::time::format_duration;
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_machinery::Status;
use portico_proto::objects::{
    DoRequest, DoResponse, ListRequest, ListResponse, WatchRequest, WatchResponse, WatchStarted,
    watch_response,
};
use portico_proto::rpc_status::from_rpc;
use portico_proxy::Proxy;
use tokio::time::timeout;

use crate::body::Body;
use crate::configuration::Configuration;
use crate::control_services::{CallReason, ControlServices, Member};
use crate::metrics::KnownResource;
use crate::render::Renderer;
use crate::request::{Request, RequestView, Response, WatchShutdown};
use crate::respond;
use crate::unavailable::unavailable;
use control_call::{ControlCall, client};
pub use metrics::LocalMetrics;
use response::ResponseHead;
use watch_buffers::WatchEvent;
pub use watch_buffers::{BufferLimits, WatchBuffers};

/// Maximum time for which the response to a write waits until the configuration contains it.
const CONFIGURATION_TIMEOUT: Duration = Duration::from_secs(1);

/// Limits of clients of local APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalLimits {
    /// `--max-request-body-bytes`: larger bodies get 413.
    pub max_body: usize,
    /// `--stalled-write-timeout`, for watches over WebSocket.
    pub stalled_write: Duration,
    /// `--control-request-timeout`: time for which requests wait for a silent control service.
    pub max_silence: Duration,
}

/// Handler of local APIs.
pub struct LocalHandler {
    /// The control services.
    pub services: ControlServices,
    /// Limits of clients.
    pub limits: LocalLimits,
    /// Configuration; a write that changes it waits until it is active.
    pub configuration: Arc<Configuration>,
    /// Dials the targets of connections (exec, proxy and others).
    pub proxy: Proxy,
    /// Tasks that deliver the events of watches.
    pub tasks: TaskSet,
    /// Events that are queued for clients.
    pub buffers: Arc<WatchBuffers>,
    /// Formats large responses.
    pub renderer: Renderer,
    /// Metrics of bodies and events.
    pub metrics: LocalMetrics,
}

type RefusalStatus = Box<Status>;

impl LocalHandler {
    /// Serves a request for a resource. All verbs but simple calls are boxed, because the future of a request is moved, and
    /// stored while it runs.
    pub async fn handle(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let info = parts.info().clone();
        let result = match info.verb.as_str() {
            _ if info.is_connect() => Box::pin(self.connect(&parts, body)).await,
            "list" => Box::pin(self.list(&parts)).await,
            "deletecollection" => Box::pin(self.delete_collection(&parts, body)).await,
            "watch" if parts.method == Method::GET => Box::pin(self.watch(&parts)).await,
            _ => self.call(&parts, body).await,
        };
        result.unwrap_or_else(|status| respond::status(&parts, &status))
    }

    async fn call(&self, request: &Parts, body: Body) -> Result<Response, RefusalStatus> {
        let body = body::read(body, &request.headers, self.limits.max_body).await?;
        let (bytes, control_call) = (body.len(), ControlCall::new(request, body));
        let attempt = |member: Arc<Member>| {
            let message = control_call.message(&member, DoRequest { call: Some(control_call.call.clone()) });
            async move { client(&member.transport.calls).r#do(message).await }
        };
        let (member, response) = self.call_with_failover(request, &control_call, attempt).await?;
        let answer = response.into_inner();
        self.services.record_shown(&member, answer.revision);
        self.wait_until_configured(answer.configures, answer.revision).await;
        let response = self.complete_response(request, answer).await;
        if request.record().known_resource() == KnownResource::Yes {
            self.metrics.record_body(request.info(), bytes);
        }
        Ok(response)
    }

    async fn list(&self, request: &Parts) -> Result<Response, RefusalStatus> {
        let control_call = ControlCall::new(request, Bytes::new());
        let (member, (first, parts)) = self.start_list(request, &control_call).await?;
        let rest = if self.services.is_single() {
            parts.map(|part| part.map(|part| part.body)).left_stream()
        } else {
            resumable_list::ResumableList::new(self.services.clone(), member, control_call, &first, parts)
                .parts()
                .right_stream()
        };
        Ok(self.respond_in_parts(request, first, rest).await)
    }

    /// Starts a response in parts. Returns the control service that sends it, and the first part.
    async fn start_list(
        &self,
        request: &Parts,
        control_call: &ControlCall,
    ) -> Result<(Arc<Member>, resumable_list::StartedList), RefusalStatus> {
        let attempt = |member: Arc<Member>| {
            let message =
                control_call.message(&member, ListRequest { call: Some(control_call.call.clone()) });
            resumable_list::begin(member, message)
        };
        let (member, started_list) = self.call_with_failover(request, control_call, attempt).await?;
        self.services.record_shown(&member, started_list.0.revision);
        Ok((member, started_list))
    }

    /// Deletes a collection. The response is sent in parts like a list, but the call is a write: it is made once, and is not
    /// resumed at another control service.
    async fn delete_collection(&self, request: &Parts, body: Body) -> Result<Response, RefusalStatus> {
        let body = body::read(body, &request.headers, self.limits.max_body).await?;
        let (bytes, control_call) = (body.len(), ControlCall::new(request, body));
        let (_, (first, parts)) = self.start_list(request, &control_call).await?;
        self.wait_until_configured(first.configures, first.revision).await;
        let response =
            self.respond_in_parts(request, first, parts.map(|part| part.map(|part| part.body))).await;
        if request.record().known_resource() == KnownResource::Yes {
            self.metrics.record_body(request.info(), bytes);
        }
        Ok(response)
    }

    /// Waits until the configuration contains a write that changes it, so that the writer's next request is authorized by it.
    async fn wait_until_configured(&self, changes_configuration: bool, revision: i64) {
        if changes_configuration {
            // Times out if the configuration stream is lost.
            let _ = timeout(CONFIGURATION_TIMEOUT, self.configuration.wait_for_policy(revision)).await;
        }
    }

    async fn respond_in_parts<S>(&self, request: &Parts, first: ListResponse, rest: S) -> Response
    where
        S: Stream<Item = Result<Bytes, tonic::Status>> + Send + 'static,
    {
        let ListResponse { code, body, media_type, warnings, retry_after_seconds, audit, .. } = first;
        let record = request.record();
        record.exclude_time(Duration::from_micros(first.webhook_microseconds));
        record.set_known_resource(code != 404 && code != 405);
        let head = response_head(request, code, &media_type, warnings, retry_after_seconds);
        let head = ResponseHead { pretty: first.pretty, ..head };
        let recorder = audit_record::record_list(request, audit, first.audit_annotations, &media_type);
        if first.unrouted {
            return respond::page_not_found();
        }
        let rest = rest.map(|part| part.map_err(|s| s.to_string().into()));
        let rest = recorder.follow(body.clone(), rest);
        response::streamed_response(&self.renderer, request, head, body, rest).await
    }

    async fn watch(&self, request: &Parts) -> Result<Response, RefusalStatus> {
        let control_call = ControlCall::new(request, Bytes::new());
        let attempt = |member: Arc<Member>| {
            let message =
                control_call.message(&member, WatchRequest { call: Some(control_call.call.clone()) });
            resumable_watch::begin(member, message)
        };
        let (member, (first, steps)) = self.call_with_failover(request, &control_call, attempt).await?;
        request.record().set_known_resource(true);
        match first {
            Some(watch_response::Step::Started(started)) => {
                let steps = if self.services.is_single() {
                    steps.left_stream()
                } else {
                    let services = self.services.clone();
                    services.record_shown(&member, started.revision);
                    let resumable =
                        resumable_watch::ResumableWatch::new(services, member, control_call, &started, steps);
                    resumable.steps().boxed().right_stream()
                };
                Ok(self.respond_with_events(request, started, steps))
            }
            Some(watch_response::Step::Refused(answer)) => Ok(self.complete_response(request, answer).await),
            Some(watch_response::Step::Frames(_)) | None => {
                Err(Box::new(Status::internal("the control service ended the watch before its start")))
            }
        }
    }

    fn respond_with_events<S>(&self, request: &Parts, started: WatchStarted, steps: S) -> Response
    where
        S: Stream<Item = Result<WatchResponse, tonic::Status>> + Send + Unpin + 'static,
    {
        request.record().warn(started.warnings);
        audit_record::annotations(request, started.audit_annotations);
        let shutdown = request.extension().map(|WatchShutdown(signal)| signal.clone());
        let seat = request.record().release_seat().filter(|_| started.initial_frames > 0);
        let steps = initial_events::hold_until_initialized(steps, started.initial_frames, seat);
        let events = self.queue_events(request, steps, shutdown);
        if websocket::is_requested(&request.headers) {
            let stalled = self.limits.stalled_write;
            return websocket::serve(request, &started.media_type, events, &self.tasks, stalled);
        }
        let head = response_head(request, 200, &started.media_type, Vec::new(), 0);
        response::unconverted_response(head, pump::body(events))
    }

    /// Calls the control service in use, and another one if it is lost.
    async fn call_with_failover<T, F, Fut>(
        &self,
        request: &Parts,
        control_call: &ControlCall,
        attempt: F,
    ) -> Result<(Arc<Member>, T), RefusalStatus>
    where
        F: Fn(Arc<Member>) -> Fut,
        Fut: Future<Output = Result<T, tonic::Status>>,
    {
        let attempt = async |member: Arc<Member>| {
            let call = std::pin::pin!(attempt(Arc::clone(&member)));
            self.fail_if_silent(&member, call).await
        };
        let result =
            self.services.call(control_call.retry_condition(), control_call.deadline(), attempt).await;
        result.map_err(|status| error_status(request, &status))
    }

    /// Waits for the response of a control service. A control service that works for long still responds to pings; the call fails
    /// if it does not.
    async fn fail_if_silent<T>(
        &self,
        member: &Member,
        mut call: Pin<&mut impl Future<Output = Result<T, tonic::Status>>>,
    ) -> Result<T, tonic::Status> {
        let limit = self.limits.max_silence;
        loop {
            match timeout(limit, call.as_mut()).await {
                Ok(result) => return result,
                Err(_) if member.silence().is_some_and(|silence| silence < limit) => {}
                Err(_) => {
                    return Err(tonic::Status::unavailable(format!(
                        "no response or ping from the control service for {}",
                        format_duration(limit)
                    )));
                }
            }
        }
    }

    async fn complete_response(&self, request: &Parts, answer: DoResponse) -> Response {
        let DoResponse { code, body, media_type, warnings, retry_after_seconds, audit, .. } = answer;
        let record = request.record();
        record.exclude_time(Duration::from_micros(answer.webhook_microseconds));
        // Only names that exist become metric labels.
        record.set_known_resource(answer.known_resource);
        let head = response_head(request, code, &media_type, warnings, retry_after_seconds);
        let head = ResponseHead { pretty: answer.pretty, ..head };
        audit_record::record_response(request, audit, answer.audit_annotations, &media_type, &body);
        if answer.unrouted {
            return respond::page_not_found();
        }
        response::complete(&self.renderer, request, head, body).await
    }

    /// Returns the events, which are read from the control service as the client reads, with a bounded queue.
    fn queue_events<S>(
        &self,
        request: &Parts,
        steps: S,
        shutdown: Option<Signal>,
    ) -> impl Stream<Item = Bytes> + Send + Unpin + use<S>
    where
        S: Stream<Item = Result<WatchResponse, tonic::Status>> + Send + Unpin + 'static,
    {
        let events = self.metrics.watch_events(request.info());
        let frames = tokio_stream::StreamExt::filter_map(steps, move |step| match step {
            Ok(WatchResponse { step: Some(watch_response::Step::Frames(bytes)), more, .. }) => {
                events.record_event(bytes.len());
                Some(Ok(WatchEvent { bytes, more }))
            }
            Ok(_) => None,
            Err(status) => Some(Err(status.to_string())),
        });
        pump::start(&self.tasks, frames, shutdown, &self.buffers)
    }
}

fn response_head(
    request: &Parts,
    code: u32,
    media_type: &str,
    warnings: Vec<String>,
    retry_after: u32,
) -> ResponseHead {
    let record = request.record();
    record.warn(warnings);
    let code = u16::try_from(code).ok().and_then(|c| StatusCode::from_u16(c).ok());
    let code = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    ResponseHead { code, media_type: media_type.to_owned(), retry_after, pretty: false }
}

/// Converts the error of a call: the control service is unavailable, too slow, or has reported an error.
fn error_status(request: &Parts, error: &tonic::Status) -> RefusalStatus {
    let status = match error.code() {
        tonic::Code::DeadlineExceeded | tonic::Code::Cancelled => {
            Status::timeout("request did not complete within the allotted timeout")
        }
        // A status with a source was created by the local transport, whose messages are not meant for users. A connection that
        // breaks during a call results in an unknown error.
        tonic::Code::Unavailable | tonic::Code::Unknown if std::error::Error::source(error).is_some() => {
            tracing::debug!(error = %CallReason(error), "cannot reach the control service");
            unavailable(
                request.info().is_read_only(),
                "the control service is unreachable, or its connection was lost",
            )
        }
        tonic::Code::Unavailable => unavailable(request.info().is_read_only(), error.message()),
        _ => from_rpc(error),
    };
    Box::new(status)
}
