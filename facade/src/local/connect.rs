//! Requests that connect to another server (`log`, `exec`, `proxy`, ...): the control service authorizes them and returns the
//! address, and the proxy dials and streams.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use portico_machinery::Status;
use portico_machinery::connect::DialTarget;
use portico_proto::objects::connect_response::Decision;
use portico_proto::objects::{ConnectRequest, ConnectResponse, DoResponse};
use portico_proxy::ConnectionRequest;

use super::control_call::{ControlCall, client};
use super::{LocalHandler, RefusalStatus, audit_record};
use crate::body::Body;
use crate::control_services::Member;
use crate::proxied_page;
use crate::request::{RequestView, Response};

/// Time to decide on a connection (exec, attach, port-forward, proxy).
///
/// Limit (Kubelets and remote commands): the request fails.
const DECISION_TIMEOUT: Duration = Duration::from_secs(30);

impl LocalHandler {
    /// Completes a response, without a content type if it has no content.
    async fn complete_without_content_type(&self, request: &Parts, answer: DoResponse) -> Response {
        let mut response = self.complete_response(request, answer).await;
        if response.status() == StatusCode::NO_CONTENT {
            response.headers_mut().remove(CONTENT_TYPE);
        }
        response
    }

    pub(super) async fn connect(&self, request: &Parts, body: Body) -> Result<Response, RefusalStatus> {
        let dial = match self.request_decision(request).await? {
            Decision::Dial(dial) => {
                DialTarget::try_from(dial).map_err(|error| Box::new(Status::internal(error)))?
            }
            Decision::Answered(answer) => {
                return Ok(self.complete_without_content_type(request, answer).await);
            }
        };
        request.record().set_known_resource(true);
        let connecting =
            ConnectionRequest { dial: &dial, client: &request.connection().client, info: request.info() };
        let sent_on = http::Request::from_parts(request.clone(), body.into_proxy());
        let mut response = self.proxy.connect(connecting, sent_on).await?;
        if !proxied_page::is_relayed(&request.headers) {
            proxied_page::confine(response.headers_mut());
        }
        Ok(response.map(Body::from))
    }

    async fn request_decision(&self, request: &Parts) -> Result<Decision, RefusalStatus> {
        let asked = ControlCall::new(request, Bytes::new());
        let attempt = |member: Arc<Member>| {
            let mut message = asked.message(&member, ConnectRequest { call: Some(asked.call.clone()) });
            message.set_timeout(DECISION_TIMEOUT);
            async move { client(&member.transport.calls).connect(message).await }
        };
        let (_, response) = self.call_with_failover(request, &asked, attempt).await?;
        let nothing = || Box::new(Status::internal("the control service returned no address to connect to"));
        let ConnectResponse { decision, audit_annotations } = response.into_inner();
        audit_record::annotations(request, audit_annotations);
        decision.ok_or_else(nothing)
    }
}
