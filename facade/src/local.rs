//! Local APIs: requests for what the control service serves, carried over gRPC with the caller's identity.
//!
//! The control service decodes, decides and encodes; this room limits bodies, streams what comes, and turns a lost
//! control service into a Status. It must not know any kind.

mod answer;
mod body;
mod connect;
mod pump;
mod websocket;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Method, Response, StatusCode};
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_machinery::Status;
use portico_machinery::status::{Cause, Details, Reason};
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
use crate::context::RequestContext;
use crate::filters::watch_termination::WatchShutdown;
use crate::freshness::Freshness;
use crate::respond;
use crate::transport::{ControlTransport, GrpcService};
use answer::Head;

/// The cause's reason when there is no control service to ask.
pub const CONTROL_SERVICE_UNAVAILABLE: &str = "ControlServiceUnavailable";

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
    transport: ControlTransport,
    limits: LocalLimits,
    configuration: Arc<Configuration>,
    proxy: Proxy,
    tasks: TaskSet,
    freshness: Arc<Freshness>,
}

type Client = ObjectsClient<GrpcService>;
type Refused = Box<Status>;

impl Local {
    /// Over this transport; writes that change the configuration wait until it shows them; what connects elsewhere is
    /// dialled by `proxy`; pumps of watches run in `tasks`; `freshness` knows the control service's signs of life.
    #[must_use]
    pub fn new(
        transport: ControlTransport,
        limits: LocalLimits,
        configuration: Arc<Configuration>,
        proxy: Proxy,
        tasks: TaskSet,
        freshness: Arc<Freshness>,
    ) -> Self {
        Self { transport, limits, configuration, proxy, tasks, freshness }
    }

    /// Answers a request for a resource.
    pub async fn handle(&self, x: &mut RequestContext) -> Response<Body> {
        let answered = match x.info.verb.as_str() {
            _ if x.info.connects() => return self.connect(x).await,
            "list" => self.list(x).await,
            "watch" => self.watch(x).await,
            _ => self.call(x).await,
        };
        answered.unwrap_or_else(|status| respond::status(x, &status))
    }

    async fn call(&self, x: &mut RequestContext) -> Result<Response<Body>, Refused> {
        let body = body::read(std::mem::take(&mut x.body), &x.parts.headers, self.limits.max_body).await?;
        let request = self.request(x, DoRequest { call: Some(call_of(x, body)) });
        let response = self.answered(x, client(&self.transport.calls).r#do(request)).await?;
        let answer = response.into_inner();
        if answer.configures {
            // Whoever has written is judged by it from the next request on; in vain when the stream is away.
            let _ = timeout(CONFIGURES, self.configuration.policy_at(answer.revision)).await;
        }
        Ok(done(x, answer))
    }

    async fn list(&self, x: &mut RequestContext) -> Result<Response<Body>, Refused> {
        let request = self.request(x, ListRequest { call: Some(call_of(x, Bytes::new())) });
        let mut lists = client(&self.transport.calls);
        let begun = async {
            let mut parts = lists.list(request).await?.into_inner();
            Ok((parts.message().await?.unwrap_or_default(), parts))
        };
        let (first, parts) = self.answered(x, begun).await?;
        let ListResponse { code, body, media_type, warnings, retry_after_seconds, .. } = first;
        let head = head(x, code, &media_type, warnings, retry_after_seconds);
        let rest = parts.map(|part| part.map(|p| p.body).map_err(|s| s.to_string().into()));
        Ok(answer::streamed(x, head, body, rest).await)
    }

    async fn watch(&self, x: &mut RequestContext) -> Result<Response<Body>, Refused> {
        let request = self.request(x, WatchRequest { call: Some(call_of(x, Bytes::new())) });
        let mut watches = client(&self.transport.streams);
        let begun = async {
            let mut steps = watches.watch(request).await?.into_inner();
            Ok((steps.message().await?.and_then(|s| s.step), steps))
        };
        let (first, steps) = self.answered(x, begun).await?;
        x.known_resource = true;
        match first {
            Some(watch_response::Step::Started(started)) => {
                x.warnings.extend(started.warnings);
                let shutdown = x.parts.extensions.get::<WatchShutdown>().map(|s| s.0.clone());
                let events = self.pumped(steps, shutdown);
                if websocket::is_asked(&x.parts.headers) {
                    let stalled = self.limits.stalled_write;
                    return Ok(websocket::serve(x, &started.media_type, events, &self.tasks, stalled));
                }
                let head = head(x, 200, &started.media_type, Vec::new(), 0);
                Ok(answer::head_only(head, pump::body(events)))
            }
            Some(watch_response::Step::Refused(answer)) => Ok(done(x, answer)),
            Some(watch_response::Step::Frames(_)) | None => {
                Err(Box::new(Status::internal("the control service ended the watch before it began")))
            }
        }
    }

    /// Waits for the control service. One that works for long goes on to give signs of life; one that gives none is not
    /// waited for.
    async fn answered<T>(
        &self,
        x: &RequestContext,
        call: impl Future<Output = Result<T, tonic::Status>>,
    ) -> Result<T, Refused> {
        let (mut call, limit) = (std::pin::pin!(call), self.limits.silence);
        loop {
            match timeout(limit, call.as_mut()).await {
                Ok(answered) => return answered.map_err(|status| refused(x, &status)),
                Err(_) if self.freshness.silence().is_some_and(|silence| silence < limit) => {}
                Err(_) => {
                    let why = format!("it has given no sign of life for {limit:?}");
                    return Err(Box::new(unavailable(x.info.is_read_only(), &why)));
                }
            }
        }
    }

    /// The events, taken off the control service's hands as they come, whether or not the client reads.
    fn pumped<S>(
        &self,
        steps: S,
        shutdown: Option<Signal>,
    ) -> impl Stream<Item = Bytes> + Send + Unpin + use<S>
    where
        S: Stream<Item = Result<WatchResponse, tonic::Status>> + Send + Unpin + 'static,
    {
        let frames = tokio_stream::StreamExt::filter_map(steps, |step| match step {
            Ok(WatchResponse { step: Some(watch_response::Step::Frames(bytes)) }) => Some(Ok(bytes)),
            Ok(_) => None,
            Err(status) => Some(Err(status.to_string())),
        });
        pump::start(&self.tasks, frames, shutdown, self.limits.watch_buffer)
    }

    fn request<T>(&self, x: &RequestContext, message: T) -> tonic::Request<T> {
        let mut request = self.transport.request(message);
        let forwarded = Forwarded {
            user: x.user.clone().unwrap_or_default(),
            request: x.info.clone(),
            audit_id: x.audit_id.to_str().unwrap_or_default().to_owned(),
        };
        forwarded.insert_into(request.metadata_mut());
        if let Some(deadline) = x.deadline {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            // At least a moment: zero would be no deadline at all to some peers.
            request.set_timeout(left.max(Duration::from_millis(1)));
        }
        request
    }
}

fn client(service: &GrpcService) -> Client {
    ObjectsClient::new(service.clone())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

fn call_of(x: &RequestContext, body: Bytes) -> Call {
    let info = &x.info;
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
        matches!(x.parts.method, Method::GET | Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    Call {
        target: Some(target),
        verb: info.verb.clone(),
        query: x.query().to_owned(),
        body,
        content_type: x.header(CONTENT_TYPE).to_owned(),
        accept: x.header(ACCEPT).to_owned(),
        user_agent: x.header(USER_AGENT).to_owned(),
        method: if plain { String::new() } else { x.parts.method.as_str().to_owned() },
    }
}

fn done(x: &mut RequestContext, answer: DoResponse) -> Response<Body> {
    let DoResponse { code, body, media_type, warnings, retry_after_seconds, .. } = answer;
    let head = head(x, code, &media_type, warnings, retry_after_seconds);
    answer::whole(x, head, body)
}

fn head(
    x: &mut RequestContext,
    code: u32,
    media_type: &str,
    warnings: Vec<String>,
    retry_after: u32,
) -> Head {
    x.warnings.extend(warnings);
    let code = u16::try_from(code).ok().and_then(|c| StatusCode::from_u16(c).ok());
    let code = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // Only names that exist become labels of metrics.
    x.known_resource = !matches!(code, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
    Head { code, media_type: media_type.to_owned(), retry_after }
}

/// What a failed call means: the service is away, too slow, or says what is wrong.
fn refused(x: &RequestContext, error: &tonic::Status) -> Refused {
    let status = match error.code() {
        tonic::Code::DeadlineExceeded | tonic::Code::Cancelled => {
            Status::timeout("request did not complete within the allotted timeout")
        }
        // What carries a source was made here, by the transport, in words for its authors. A connection that breaks in the
        // middle of a call surfaces as an unknown error.
        tonic::Code::Unavailable | tonic::Code::Unknown if std::error::Error::source(error).is_some() => {
            tracing::debug!(%error, "the control service was not reached");
            unavailable(x.info.is_read_only(), "it cannot be reached, or its connection broke")
        }
        tonic::Code::Unavailable => unavailable(x.info.is_read_only(), error.message()),
        _ => from_rpc(error),
    };
    Box::new(status)
}

/// 503: there is no control service to ask. `read_only` requests may be repeated.
pub(crate) fn unavailable(read_only: bool, why: &str) -> Status {
    let message = "the control service is not available; aggregated APIs go on being served";
    Status::failure(Reason::ServiceUnavailable, message)
        // Clients repeat what carries this; a write may have been done before the connection broke.
        .with_details(Details { retry_after_seconds: u32::from(read_only), ..Details::default() })
        .with_cause(Cause {
            reason: CONTROL_SERVICE_UNAVAILABLE.to_owned(),
            message: why.to_owned(),
            field: String::new(),
        })
}
