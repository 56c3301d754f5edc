//! Methods of the control service that may be called over HTTPS, with JSON, in the caller's name.
//!
//! Path and permission are those of the gRPC method: the facade requires the verb `post` on `/grpc/<service>/<method>`, and the
//! control service checks it again. For histories only the control service checks, for the verb `history` on the objects that the
//! message names. The JSON is that of proto3, with all fields; a stream of messages is one line per message.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http::request::Parts;
use portico_kit::header_text;
use portico_machinery::Status;
use portico_proto::MAX_MESSAGE_BYTES;
use portico_proto::admin::DescribeLogRequest;
use portico_proto::admin::admin_client::AdminClient;
use portico_proto::apiextensions::definitions_client::DefinitionsClient;
use portico_proto::config::WatchFacadesRequest;
use portico_proto::config::config_client::ConfigClient;
use portico_proto::history::ListRequest as PastRequest;
use portico_proto::history::history_client::HistoryClient;
use portico_proto::identity::ForwardedCaller;
use portico_proto::routes::routes_client::RoutesClient;
use portico_proto::rpc_status::from_rpc;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::console_paths;
use crate::control_services::{CallReason, ControlServices, Member, RetryCondition};
use crate::request::RequestView;
use crate::transport::GrpcService;
use crate::unavailable::unavailable;

/// Methods that can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonMethod {
    /// `portico.routes.v1.Routes/Explain`
    Explain,
    /// `portico.routes.v1.Routes/List`
    Routes,
    /// `portico.config.v1.Config/Facades`
    Facades,
    /// `portico.config.v1.Config/WatchFacades`
    WatchFacades,
    /// `portico.apiextensions.v1.Definitions/Check`
    Check,
    /// `portico.history.v1.History/States`
    States,
    /// `portico.history.v1.History/List`
    History,
    /// `portico.history.v1.History/Restore`
    Restore,
}

/// Response of a method.
pub enum JsonAnswer {
    /// JSON of one message.
    Whole(Vec<u8>),
    /// One line per message, `{"result": ...}`; after a failure, a last line `{"error": ...}` with a Status.
    Lines(BoxStream<'static, Bytes>),
}

impl JsonMethod {
    /// All methods with their paths.
    pub const ALL: [(&str, Self); 8] = [
        ("/grpc/portico.routes.v1.Routes/Explain", Self::Explain),
        ("/grpc/portico.routes.v1.Routes/List", Self::Routes),
        ("/grpc/portico.config.v1.Config/Facades", Self::Facades),
        (console_paths::WATCH_FACADES, Self::WatchFacades),
        ("/grpc/portico.apiextensions.v1.Definitions/Check", Self::Check),
        (console_paths::HISTORY_STATES, Self::States),
        (console_paths::HISTORY_LIST, Self::History),
        (console_paths::HISTORY_RESTORE, Self::Restore),
    ];
}

/// Error of a call.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The message in the request cannot be decoded.
    #[error("the request body is not a message of the method: {0}")]
    Message(String),
    /// The control service refuses the call or cannot be reached.
    #[error("{}", .0.message)]
    Refused(Box<Status>),
}

/// Calls methods of the control service.
pub struct JsonCalls {
    services: ControlServices,
    /// `--max-request-body-bytes`
    pub max_body: usize,
}

impl JsonCalls {
    /// Creates a caller; `max_body` is the maximum size of a request in bytes.
    #[must_use]
    pub fn new(services: ControlServices, max_body: usize) -> Self {
        Self { services, max_body }
    }

    /// Calls a method and returns its response as JSON.
    ///
    /// # Errors
    /// [`CallError`]
    pub async fn call(
        &self,
        method: JsonMethod,
        request: &Parts,
        body: &[u8],
    ) -> Result<JsonAnswer, CallError> {
        use RetryCondition::{Always, IfNeverReceived};
        let (r, b) = (request, body);
        match method {
            JsonMethod::Explain => {
                self.call_unary(Always, r, b, |to, rpc| async move { routes_client(&to).explain(rpc).await })
                    .await
            }
            JsonMethod::Routes => {
                self.call_unary(Always, r, b, |to, rpc| async move { routes_client(&to).list(rpc).await })
                    .await
            }
            JsonMethod::Facades => {
                self.call_unary(Always, r, b, |to, rpc| async move { config_client(&to).facades(rpc).await })
                    .await
            }
            JsonMethod::WatchFacades => self.watch_facades(r, b).await,
            JsonMethod::Check => {
                self.call_unary(
                    Always,
                    r,
                    b,
                    |to, rpc| async move { definitions_client(&to).check(rpc).await },
                )
                .await
            }
            JsonMethod::States => {
                self.call_unary(Always, r, b, |to, rpc| async move { history_client(&to).states(rpc).await })
                    .await
            }
            JsonMethod::History => self.list_history(r, b).await,
            JsonMethod::Restore => {
                self.call_unary(IfNeverReceived, r, b, |to, rpc| async move {
                    history_client(&to).restore(rpc).await
                })
                .await
            }
        }
    }

    /// Calls a unary method.
    async fn call_unary<Q, A, F, Fut>(
        &self,
        retry_condition: RetryCondition,
        request: &Parts,
        body: &[u8],
        attempt: F,
    ) -> Result<JsonAnswer, CallError>
    where
        Q: DeserializeOwned + Clone,
        A: Serialize,
        F: Fn(Arc<Member>, tonic::Request<Q>) -> Fut,
        Fut: Future<Output = Result<tonic::Response<A>, tonic::Status>>,
    {
        let answer = self.call_with_failover(retry_condition, request, &decode(body)?, attempt).await?;
        encode(&answer).map(JsonAnswer::Whole)
    }

    /// Calls the method whose stream ends only when the client disconnects.
    async fn watch_facades(&self, request: &Parts, body: &[u8]) -> Result<JsonAnswer, CallError> {
        let message: WatchFacadesRequest = decode(body)?;
        let ask = |member: Arc<Member>, rpc| async move {
            ConfigClient::new(member.transport.streams.clone()).watch_facades(rpc).await
        };
        let reports = self.call_with_failover(RetryCondition::Always, request, &message, ask).await?;
        Ok(JsonAnswer::Lines(lines(reports)))
    }

    /// Lists the objects that existed at a time. A failure before the first message is returned as an error.
    async fn list_history(&self, request: &Parts, body: &[u8]) -> Result<JsonAnswer, CallError> {
        let message: PastRequest = decode(body)?;
        let ask = |to: Arc<Member>, rpc| async move { history_client(&to).list(rpc).await };
        let mut parts = self.call_with_failover(RetryCondition::Always, request, &message, ask).await?;
        let first = parts.message().await.map_err(|error| call_error(&error))?;
        let first = stream::iter(first.map(|part| line(&part)));
        Ok(JsonAnswer::Lines(first.chain(lines(parts)).boxed()))
    }

    /// Returns the current revision; all acknowledged writes are included.
    ///
    /// # Errors
    /// [`CallError`]
    pub async fn revision(&self, request: &Parts) -> Result<i64, CallError> {
        let ask = |member: Arc<Member>, rpc| async move {
            AdminClient::new(member.transport.calls.clone()).describe_log(rpc).await
        };
        let message = DescribeLogRequest::default();
        Ok(self.call_with_failover(RetryCondition::Always, request, &message, ask).await?.revision)
    }

    /// Calls the control service in use, and another one if it is lost, as far as `retry_condition` allows.
    async fn call_with_failover<Q, A, F, Fut>(
        &self,
        retry_condition: RetryCondition,
        request: &Parts,
        message: &Q,
        attempt: F,
    ) -> Result<A, CallError>
    where
        Q: Clone,
        F: Fn(Arc<Member>, tonic::Request<Q>) -> Fut,
        Fut: Future<Output = Result<tonic::Response<A>, tonic::Status>>,
    {
        let forwarded = ForwardedCaller {
            user: request.user(),
            request: Arc::clone(request.info()),
            audit_id: header_text::text(request.audit_id()).to_owned(),
            own_account: false,
        };
        let deadline = request.record().deadline();
        let attempt = |member: Arc<Member>| {
            let mut rpc = member.transport.request(message.clone());
            forwarded.insert_into(rpc.metadata_mut());
            if let Some(deadline) = deadline {
                rpc.set_timeout(deadline.saturating_duration_since(Instant::now()));
            }
            attempt(member, rpc)
        };
        let deadline = deadline.map(tokio::time::Instant::from_std);
        let result = self.services.call(retry_condition, deadline, attempt).await;
        result.map(|(_, answer)| answer.into_inner()).map_err(|error| call_error(&error))
    }
}

fn routes_client(member: &Member) -> RoutesClient<GrpcService> {
    RoutesClient::new(member.transport.calls.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
}

fn config_client(member: &Member) -> ConfigClient<GrpcService> {
    ConfigClient::new(member.transport.calls.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
}

fn definitions_client(member: &Member) -> DefinitionsClient<GrpcService> {
    let client = DefinitionsClient::new(member.transport.calls.clone());
    client.max_decoding_message_size(MAX_MESSAGE_BYTES).max_encoding_message_size(MAX_MESSAGE_BYTES)
}

fn history_client(member: &Member) -> HistoryClient<GrpcService> {
    HistoryClient::new(member.transport.calls.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
}

fn call_error(error: &tonic::Status) -> CallError {
    CallError::Refused(Box::new(match error.code() {
        tonic::Code::Unavailable | tonic::Code::Unknown => {
            tracing::debug!(error = %CallReason(error), "cannot reach the control service");
            unavailable(true, "the control service is unreachable, or its connection was lost")
        }
        tonic::Code::DeadlineExceeded | tonic::Code::Cancelled => {
            Status::timeout("request did not complete within the allotted timeout")
        }
        _ => from_rpc(error),
    }))
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, CallError> {
    serde_json::from_slice(body).map_err(|error| CallError::Message(error.to_string()))
}

fn encode(answer: &impl Serialize) -> Result<Vec<u8>, CallError> {
    serde_json::to_vec(answer)
        .map_err(|error| CallError::Refused(Box::new(Status::internal(error.to_string()))))
}

/// Encodes a stream: one line per message, and a last one for the error that ends the stream.
fn lines<M: Serialize + Send + 'static>(messages: tonic::Streaming<M>) -> BoxStream<'static, Bytes> {
    let all = stream::unfold(Some(messages), move |messages| async move {
        let mut messages = messages?;
        match messages.message().await {
            Ok(message) => message.map(|message| (line(&message), Some(messages))),
            Err(error) => Some((error_line(call_error(&error)), None)),
        }
    });
    all.boxed()
}

fn line(message: &impl Serialize) -> Bytes {
    match encode(message) {
        Ok(json) => [b"{\"result\":", &*json, b"}\n"].concat().into(),
        Err(error) => error_line(error),
    }
}

fn error_line(error: CallError) -> Bytes {
    let status = match error {
        CallError::Refused(status) => *status,
        CallError::Message(message) => Status::internal(message),
    };
    [b"{\"error\":", &*status.to_json(), b"}\n"].concat().into()
}

#[cfg(test)]
mod tests {
    use portico_proto::history::list_request::At;

    use super::*;

    fn at(json: &str) -> Result<Option<At>, String> {
        let read: Result<PastRequest, _> = decode(json.as_bytes());
        read.map(|request| request.at).map_err(|error| error.to_string())
    }

    #[test]
    fn messages_are_decoded_as_proto3_json_and_unknown_fields_are_refused() {
        assert_eq!(at(r#"{"revision": 7}"#), Ok(Some(At::Revision(7))));
        assert_eq!(at(r#"{"revision": "7"}"#), Ok(Some(At::Revision(7))));
        assert_eq!(at(r#"{"target": null}"#), Ok(None));
        for wrong in [r#"{"revision": "seven"}"#, r#"{"revision": 7, "time": 8}"#, r#"{"when": 7}"#, "[]", ""]
        {
            assert!(at(wrong).unwrap_err().contains("not a message of the method"), "{wrong}");
        }
    }
}
