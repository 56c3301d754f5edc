//! Methods of the control service that may be called over HTTPS, with JSON, in the caller's name.
//!
//! Path and permission are those of the gRPC method: the facade has asked for `post` on `/grpc/<service>/<method>`, and the control
//! service asks for the same again. Of histories the control service alone asks, for the verb `history` on what the message names. The JSON
//! is that of proto3, with every field; a stream of messages is a line for each.

mod history;
mod messages;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http::request::Parts;
use portico_machinery::Status;
use portico_proto::MAX_MESSAGE_BYTES;
use portico_proto::admin::DescribeLogRequest;
use portico_proto::admin::admin_client::AdminClient;
use portico_proto::apiextensions::definitions_client::DefinitionsClient;
use portico_proto::config::config_client::ConfigClient;
use portico_proto::config::{FacadesRequest, WatchFacadesRequest};
use portico_proto::identity::Forwarded;
use portico_proto::routes::routes_client::RoutesClient;
use portico_proto::routes::{ExplainRequest, ListRequest};
use portico_proto::rpc_status::from_rpc;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::console_paths;
use crate::control_services::{ControlServices, Member, Repeat};
use crate::request::RequestView;
use crate::unavailable::unavailable;

/// What may be called.
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
    Past,
    /// `portico.history.v1.History/Restore`
    Restore,
}

/// What is answered.
pub enum JsonAnswer {
    /// One message.
    Whole(Vec<u8>),
    /// A line for each message: `{"result": ...}`, and where it breaks off `{"error": ...}` with a Status.
    Lines(BoxStream<'static, Bytes>),
}

impl JsonMethod {
    /// Every one, with its path.
    pub const ALL: [(&str, Self); 8] = [
        ("/grpc/portico.routes.v1.Routes/Explain", Self::Explain),
        ("/grpc/portico.routes.v1.Routes/List", Self::Routes),
        ("/grpc/portico.config.v1.Config/Facades", Self::Facades),
        (console_paths::WATCH_FACADES, Self::WatchFacades),
        ("/grpc/portico.apiextensions.v1.Definitions/Check", Self::Check),
        (console_paths::STATES, Self::States),
        (console_paths::PAST, Self::Past),
        (console_paths::RESTORE, Self::Restore),
    ];
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The message cannot be read.
    #[error("the request's body is not the method's message: {0}")]
    Message(String),
    /// The control service refuses it, or is not there.
    #[error("{}", .0.message)]
    Refused(Box<Status>),
}

/// See the module.
pub struct JsonCalls {
    services: ControlServices,
    /// `--max-request-body-bytes`
    pub max_body: usize,
}

impl JsonCalls {
    /// Over these control services, with messages of so many bytes.
    #[must_use]
    pub fn new(services: ControlServices, max_body: usize) -> Self {
        Self { services, max_body }
    }

    /// The answer as JSON.
    ///
    /// # Errors
    /// [`CallError`]
    pub async fn call(
        &self,
        method: JsonMethod,
        request: &Parts,
        body: &[u8],
    ) -> Result<JsonAnswer, CallError> {
        let whole = match method {
            JsonMethod::Explain => self.explain(request, read(body)?).await?,
            JsonMethod::Routes => self.routes(request, read(body)?).await?,
            JsonMethod::Facades => self.facades(request, read(body)?).await?,
            JsonMethod::Check => self.check(request, read(body)?).await?,
            JsonMethod::States => self.states(request, read(body)?).await?,
            JsonMethod::Restore => self.restore(request, read(body)?).await?,
            JsonMethod::WatchFacades => {
                return self.watch_facades(request, read(body)?).await.map(JsonAnswer::Lines);
            }
            JsonMethod::Past => return self.past(request, read(body)?).await.map(JsonAnswer::Lines),
        };
        Ok(JsonAnswer::Whole(whole))
    }

    async fn explain(&self, request: &Parts, asked: messages::Explain) -> Result<Vec<u8>, CallError> {
        let answer =
            self.asked(Repeat::Always, request, |member, mut rpc: tonic::Request<ExplainRequest>| {
                rpc.get_mut().subject.clone_from(&asked.subject);
                async move { RoutesClient::new(member.transport.calls.clone()).explain(rpc).await }
            });
        written(&messages::Explained::from(answer.await?))
    }

    async fn routes(&self, request: &Parts, asked: messages::List) -> Result<Vec<u8>, CallError> {
        let answer = self.asked(Repeat::Always, request, |member, mut rpc: tonic::Request<ListRequest>| {
            rpc.get_mut().group.clone_from(&asked.group);
            async move {
                let client = RoutesClient::new(member.transport.calls.clone());
                client.max_decoding_message_size(MAX_MESSAGE_BYTES).list(rpc).await
            }
        });
        written(&messages::Routes::from(answer.await?))
    }

    async fn facades(&self, request: &Parts, _: messages::Nothing) -> Result<Vec<u8>, CallError> {
        let ask = |member: Arc<Member>, rpc: tonic::Request<FacadesRequest>| async move {
            ConfigClient::new(member.transport.calls.clone()).facades(rpc).await
        };
        written(&messages::Facades::from(self.asked(Repeat::Always, request, ask).await?))
    }

    /// Goes on until somebody ends it.
    async fn watch_facades(
        &self,
        request: &Parts,
        _: messages::Nothing,
    ) -> Result<BoxStream<'static, Bytes>, CallError> {
        let ask = |member: Arc<Member>, rpc: tonic::Request<WatchFacadesRequest>| async move {
            ConfigClient::new(member.transport.streams.clone()).watch_facades(rpc).await
        };
        let reports = self.asked(Repeat::Always, request, ask).await?;
        Ok(lines(reports, messages::FacadeReport::from))
    }

    async fn check(&self, request: &Parts, asked: messages::Check) -> Result<Vec<u8>, CallError> {
        let asked = asked.into_request().map_err(CallError::Message)?;
        let answer = self.asked(Repeat::Always, request, |member, mut rpc| {
            *rpc.get_mut() = asked.clone();
            async move {
                let client = DefinitionsClient::new(member.transport.calls.clone());
                let client = client.max_decoding_message_size(MAX_MESSAGE_BYTES);
                client.max_encoding_message_size(MAX_MESSAGE_BYTES).check(rpc).await
            }
        });
        written(&messages::Checked::from(answer.await?))
    }

    /// The revision of now, with all that is acknowledged.
    ///
    /// # Errors
    /// [`CallError`]
    pub async fn revision(&self, request: &Parts) -> Result<i64, CallError> {
        let ask = |member: Arc<Member>, rpc: tonic::Request<DescribeLogRequest>| async move {
            AdminClient::new(member.transport.calls.clone()).describe_log(rpc).await
        };
        Ok(self.asked(Repeat::Always, request, ask).await?.revision)
    }

    /// Asks the control service in use, and others when it is lost, as far as `repeat` allows.
    async fn asked<Q, A, F, Fut>(&self, repeat: Repeat, request: &Parts, attempt: F) -> Result<A, CallError>
    where
        Q: Default,
        F: Fn(Arc<Member>, tonic::Request<Q>) -> Fut,
        Fut: Future<Output = Result<tonic::Response<A>, tonic::Status>>,
    {
        let forwarded = Forwarded {
            user: request.user(),
            request: Arc::clone(request.info()),
            audit_id: request.audit_id().to_str().unwrap_or_default().to_owned(),
        };
        let deadline = request.record().deadline();
        let attempt = |member: Arc<Member>| {
            let mut rpc = member.transport.request(Q::default());
            forwarded.insert_into(rpc.metadata_mut());
            if let Some(deadline) = deadline {
                rpc.set_timeout(deadline.saturating_duration_since(Instant::now()));
            }
            attempt(member, rpc)
        };
        let deadline = deadline.map(tokio::time::Instant::from_std);
        let answered = self.services.call(repeat, deadline, attempt).await;
        answered.map(|(_, answer)| answer.into_inner()).map_err(|error| refused(&error))
    }
}

fn refused(error: &tonic::Status) -> CallError {
    CallError::Refused(Box::new(match error.code() {
        tonic::Code::Unavailable | tonic::Code::Unknown => {
            tracing::debug!(%error, "the control service was not reached");
            unavailable(true, "it cannot be reached, or its connection broke")
        }
        tonic::Code::DeadlineExceeded | tonic::Code::Cancelled => {
            Status::timeout("request did not complete within the allotted timeout")
        }
        _ => from_rpc(error),
    }))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, CallError> {
    serde_json::from_slice(body).map_err(|error| CallError::Message(error.to_string()))
}

fn written(answer: &impl Serialize) -> Result<Vec<u8>, CallError> {
    serde_json::to_vec(answer)
        .map_err(|error| CallError::Refused(Box::new(Status::internal(error.to_string()))))
}

/// A line for each message, and one for what breaks them off.
fn lines<M, L>(messages: tonic::Streaming<M>, as_json: fn(M) -> L) -> BoxStream<'static, Bytes>
where
    M: Send + 'static,
    L: Serialize + 'static,
{
    let all = stream::unfold(Some(messages), move |messages| async move {
        let mut messages = messages?;
        match messages.message().await {
            Ok(message) => message.map(|message| (line(&as_json(message)), Some(messages))),
            Err(error) => Some((failed(refused(&error)), None)),
        }
    });
    all.boxed()
}

fn line(message: &impl Serialize) -> Bytes {
    match written(message) {
        Ok(json) => [b"{\"result\":", &*json, b"}\n"].concat().into(),
        Err(error) => failed(error),
    }
}

fn failed(error: CallError) -> Bytes {
    let status = match error {
        CallError::Refused(status) => *status,
        CallError::Message(message) => Status::internal(message),
    };
    [b"{\"error\":", &*status.to_json(), b"}\n"].concat().into()
}
