//! What objects were, and the way back: `portico.history.v1.History`.

use super::messages::history as messages;
use super::{CallError, JsonCalls, line, lines, refused, written};
use crate::control_services::{Member, Repeat};
use crate::transport::GrpcService;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http::request::Parts;
use portico_proto::MAX_MESSAGE_BYTES;
use portico_proto::history::history_client::HistoryClient;
use portico_proto::history::{ListRequest, RestoreRequest, StatesRequest};

fn client(member: &Member) -> HistoryClient<GrpcService> {
    HistoryClient::new(member.transport.calls.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
}

impl JsonCalls {
    /// The states of an object.
    pub(super) async fn states(
        &self,
        request: &Parts,
        asked: messages::States,
    ) -> Result<Vec<u8>, CallError> {
        let asked = StatesRequest::from(asked);
        let answer = self.asked(Repeat::Always, request, |member, mut rpc| {
            *rpc.get_mut() = asked.clone();
            async move { client(&member).states(rpc).await }
        });
        written(&messages::StatesAnswer::from(answer.await?))
    }

    /// An object gets a past content; sent again only where nobody can have received it.
    pub(super) async fn restore(
        &self,
        request: &Parts,
        asked: messages::Restore,
    ) -> Result<Vec<u8>, CallError> {
        let asked = RestoreRequest::from(asked);
        let answer = self.asked(Repeat::IfNeverReceived, request, |member, mut rpc| {
            *rpc.get_mut() = asked.clone();
            async move { client(&member).restore(rpc).await }
        });
        written(&messages::Restored::from(answer.await?))
    }

    /// What there was at a time. A refusal is one as long as nothing was read.
    pub(super) async fn past(
        &self,
        request: &Parts,
        asked: messages::Past,
    ) -> Result<BoxStream<'static, Bytes>, CallError> {
        let asked = ListRequest::try_from(asked).map_err(CallError::Message)?;
        let answer = self.asked(Repeat::Always, request, |member, mut rpc| {
            *rpc.get_mut() = asked.clone();
            async move { client(&member).list(rpc).await }
        });
        let mut parts = answer.await?;
        let first = parts.message().await.map_err(|error| refused(&error))?;
        let first = stream::iter(first.map(|part| line(&messages::PastPart::from(part))));
        Ok(first.chain(lines(parts, messages::PastPart::from)).boxed())
    }
}
