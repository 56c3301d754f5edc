//! Local APIs: requests for what the control service serves, carried over gRPC with the caller's identity.
//!
//! The control service decodes, decides and encodes; this module limits bodies, streams what comes, and turns a lost
//! control service into a Status. It must not know any kind.

mod answer;
mod body;
mod connect;
mod initializing;
mod metrics;
mod pump;
mod recorded;
mod websocket;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::request::Parts;
use http::{Method, StatusCode};
use portico_kit::lifecycle::Signal;
use portico_kit::spans;
use portico_kit::tasks::TaskSet;
use portico_machinery::Status;
use portico_proto::MAX_MESSAGE_BYTES;
use portico_proto::identity::Forwarded;
use portico_proto::objects::objects_client::ObjectsClient;
use portico_proto::objects::{
    Call, DoRequest, DoResponse, ListRequest, ListResponse, Target, WatchRequest, WatchResponse,
    watch_response,
};
use portico_proto::rpc_status::from_rpc;
use portico_proxy::Proxy;
use tokio::time::timeout;

use crate::body::Body;
use crate::configuration::Configuration;
use crate::freshness::Freshness;
use crate::render::Renderer;
use crate::request::{Request, RequestView, Response, WatchShutdown};
use crate::respond;
use crate::transport::{ControlTransport, GrpcService};
use crate::unavailable::unavailable;
use answer::Head;
pub use metrics::LocalMetrics;

/// How long the answer to a write waits for the configuration to show it.
const CONFIGURES: Duration = Duration::from_secs(1);

/// Limits towards clients of local APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalLimits {
    /// `--max-request-body-bytes`: more is 413.
    pub max_body: usize,
    /// Bytes of events that wait for a watcher; more ends its watch.
    pub watch_buffer: usize,
    /// `--stalled-write-timeout`, for watches over WebSocket.
    pub stalled_write: Duration,
    /// `--control-request-timeout`: how long requests wait for a control service that is silent.
    pub silence: Duration,
}

/// See the module.
pub struct Local {
    /// To the control service.
    pub transport: ControlTransport,
    /// Towards clients.
    pub limits: LocalLimits,
    /// Writes that change it wait until it shows them.
    pub configuration: Arc<Configuration>,
    /// Dials what connects elsewhere.
    pub proxy: Proxy,
    /// In which watches are pumped.
    pub tasks: TaskSet,
    /// Knows the control service's signs of life.
    pub freshness: Arc<Freshness>,
    /// Lays large answers out.
    pub renderer: Renderer,
    /// Of bodies and events.
    pub metrics: LocalMetrics,
}

type Client = ObjectsClient<GrpcService>;
type Refused = Box<Status>;

impl Local {
    /// Answers a request for a resource.
    pub async fn handle(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let info = parts.info().clone();
        let answered = match info.verb.as_str() {
            _ if info.connects() => self.connect(&parts, body).await,
            "list" => self.list(&parts).await,
            "watch" => self.watch(&parts).await,
            _ => self.call(&parts, body).await,
        };
        answered.unwrap_or_else(|status| respond::status(&parts, &status))
    }

    async fn call(&self, request: &Parts, body: Body) -> Result<Response, Refused> {
        let body = body::read(body, &request.headers, self.limits.max_body).await?;
        let bytes = body.len();
        let call = self.message(request, DoRequest { call: Some(call_of(request, body)) });
        let response = self.answered(request, client(&self.transport.calls).r#do(call)).await?;
        let answer = response.into_inner();
        if answer.configures {
            // Whoever has written is checked by it from the next request on; in vain when the stream is away.
            let _ = timeout(CONFIGURES, self.configuration.policy_at(answer.revision)).await;
        }
        let response = self.done(request, answer).await;
        if request.record().is_known_resource() {
            self.metrics.body(request.info(), bytes);
        }
        Ok(response)
    }

    async fn list(&self, request: &Parts) -> Result<Response, Refused> {
        let call = self.message(request, ListRequest { call: Some(call_of(request, Bytes::new())) });
        let mut lists = client(&self.transport.calls);
        let begun = async {
            let mut parts = lists.list(call).await?.into_inner();
            Ok((parts.message().await?.unwrap_or_default(), parts))
        };
        let (first, parts) = self.answered(request, begun).await?;
        let ListResponse { code, body, media_type, warnings, retry_after_seconds, audit, .. } = first;
        request.record().set_known_resource(code != 404 && code != 405);
        let head = head(request, code, &media_type, warnings, retry_after_seconds);
        let recorder = recorded::list(request, audit, first.audit_annotations, &media_type);
        let rest = parts.map(|part| part.map(|p| p.body).map_err(|s| s.to_string().into()));
        let rest = recorder.follow(body.clone(), rest);
        Ok(answer::streamed(&self.renderer, request, head, body, rest).await)
    }

    async fn watch(&self, request: &Parts) -> Result<Response, Refused> {
        let call = self.message(request, WatchRequest { call: Some(call_of(request, Bytes::new())) });
        let mut watches = client(&self.transport.streams);
        let begun = async {
            let mut steps = watches.watch(call).await?.into_inner();
            Ok((steps.message().await?.and_then(|s| s.step), steps))
        };
        let (first, steps) = self.answered(request, begun).await?;
        request.record().set_known_resource(true);
        match first {
            Some(watch_response::Step::Started(started)) => {
                request.record().warn(started.warnings);
                recorded::annotations(request, started.audit_annotations);
                let shutdown = request.found().map(|WatchShutdown(signal)| signal.clone());
                let seat = request.record().leave_seat().filter(|_| started.initial_frames > 0);
                let steps = initializing::keep_until(steps, started.initial_frames, seat);
                let events = self.pumped(request, steps, shutdown);
                if websocket::is_asked(&request.headers) {
                    let stalled = self.limits.stalled_write;
                    return Ok(websocket::serve(request, &started.media_type, events, &self.tasks, stalled));
                }
                let head = head(request, 200, &started.media_type, Vec::new(), 0);
                Ok(answer::head_only(head, pump::body(events)))
            }
            Some(watch_response::Step::Refused(answer)) => Ok(self.done(request, answer).await),
            Some(watch_response::Step::Frames(_)) | None => {
                Err(Box::new(Status::internal("the control service ended the watch before it began")))
            }
        }
    }

    /// Waits for the control service. One that works for long goes on to give signs of life; one that gives none is not
    /// waited for.
    async fn answered<T>(
        &self,
        request: &Parts,
        call: impl Future<Output = Result<T, tonic::Status>>,
    ) -> Result<T, Refused> {
        let (mut call, limit) = (std::pin::pin!(call), self.limits.silence);
        loop {
            match timeout(limit, call.as_mut()).await {
                Ok(answered) => return answered.map_err(|status| refused(request, &status)),
                Err(_) if self.freshness.silence().is_some_and(|silence| silence < limit) => {}
                Err(_) => {
                    let why = format!("it has given no sign of life for {limit:?}");
                    return Err(Box::new(unavailable(request.info().is_read_only(), &why)));
                }
            }
        }
    }

    async fn done(&self, request: &Parts, answer: DoResponse) -> Response {
        let DoResponse { code, body, media_type, warnings, retry_after_seconds, audit, .. } = answer;
        let record = request.record();
        record.leave_out(Duration::from_micros(answer.webhook_microseconds));
        // Only names that exist become labels of metrics.
        record.set_known_resource(answer.known_resource);
        let head = head(request, code, &media_type, warnings, retry_after_seconds);
        recorded::whole(request, audit, answer.audit_annotations, &media_type, &body);
        answer::whole(&self.renderer, request, head, body).await
    }

    /// The events, taken off the control service's hands as they come, whether or not the client reads.
    fn pumped<S>(
        &self,
        request: &Parts,
        steps: S,
        shutdown: Option<Signal>,
    ) -> impl Stream<Item = Bytes> + Send + Unpin + use<S>
    where
        S: Stream<Item = Result<WatchResponse, tonic::Status>> + Send + Unpin + 'static,
    {
        let events = self.metrics.watch(request.info());
        let frames = tokio_stream::StreamExt::filter_map(steps, move |step| match step {
            Ok(WatchResponse { step: Some(watch_response::Step::Frames(bytes)) }) => {
                events.sent(bytes.len());
                Some(Ok(bytes))
            }
            Ok(_) => None,
            Err(status) => Some(Err(status.to_string())),
        });
        pump::start(&self.tasks, frames, shutdown, self.limits.watch_buffer)
    }

    fn message<T>(&self, request: &Parts, message: T) -> tonic::Request<T> {
        let mut call = self.transport.request(message);
        let forwarded = Forwarded {
            user: request.user(),
            request: request.info().clone(),
            audit_id: request.audit_id().to_str().unwrap_or_default().to_owned(),
        };
        forwarded.insert_into(call.metadata_mut());
        spans::insert_into(call.metadata_mut().as_mut());
        if let Some(deadline) = request.record().deadline() {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            // At least a moment: zero would be no deadline at all to some peers.
            call.set_timeout(left.max(Duration::from_millis(1)));
        }
        call
    }
}

fn client(service: &GrpcService) -> Client {
    ObjectsClient::new(service.clone())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

fn call_of(request: &Parts, body: Bytes) -> Call {
    let info = request.info();
    let target = Target {
        group: info.api_group.clone(),
        version: info.api_version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        namespace: info.namespace.clone(),
        // Not the info's name: a field selector may have put one there, for authorization only.
        name: info.parts.get(1).cloned().unwrap_or_default(),
        rest: if info.subresource.is_empty() { String::new() } else { info.rest() },
    };
    let plain =
        matches!(request.method, Method::GET | Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    Call {
        target: Some(target),
        verb: info.verb.clone(),
        query: request.query().to_owned(),
        body,
        content_type: request.header(CONTENT_TYPE).to_owned(),
        accept: request.header(ACCEPT).to_owned(),
        user_agent: request.header(USER_AGENT).to_owned(),
        audit_level: recorded::level(request).into(),
        method: if plain { String::new() } else { request.method.as_str().to_owned() },
    }
}

fn head(request: &Parts, code: u32, media_type: &str, warnings: Vec<String>, retry_after: u32) -> Head {
    let record = request.record();
    record.warn(warnings);
    let code = u16::try_from(code).ok().and_then(|c| StatusCode::from_u16(c).ok());
    let code = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Head { code, media_type: media_type.to_owned(), retry_after }
}

/// What a failed call means: the service is away, too slow, or says what is wrong.
fn refused(request: &Parts, error: &tonic::Status) -> Refused {
    let status = match error.code() {
        tonic::Code::DeadlineExceeded | tonic::Code::Cancelled => {
            Status::timeout("request did not complete within the allotted timeout")
        }
        // What carries a source was made here, by the transport, in words for its authors. A connection that breaks in the
        // middle of a call surfaces as an unknown error.
        tonic::Code::Unavailable | tonic::Code::Unknown if std::error::Error::source(error).is_some() => {
            tracing::debug!(%error, "the control service was not reached");
            unavailable(request.info().is_read_only(), "it cannot be reached, or its connection broke")
        }
        tonic::Code::Unavailable => unavailable(request.info().is_read_only(), error.message()),
        _ => from_rpc(error),
    };
    Box::new(status)
}
