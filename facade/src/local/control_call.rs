//! Call to a control service: the request and the identity of its caller, independent of which control service receives it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::request::Parts;
use portico_kit::{header_text, spans};
use portico_proto::MAX_MESSAGE_BYTES;
use portico_proto::identity::ForwardedCaller;
use portico_proto::objects::objects_client::ObjectsClient;
use portico_proto::objects::{Call, Target};

use super::audit_record;
use crate::control_services::{Member, RetryCondition};
use crate::request::RequestView;
use crate::transport::GrpcService;

/// Call to a control service. It outlives the HTTP request, because a watch can be resumed.
#[derive(Clone)]
pub(super) struct ControlCall {
    pub(super) call: Call,
    forwarded: ForwardedCaller,
    deadline: Option<Instant>,
}

impl ControlCall {
    /// Creates the call for a request with this body.
    pub(super) fn new(request: &Parts, body: Bytes) -> Self {
        Self {
            call: new_call(request, body),
            forwarded: ForwardedCaller {
                user: request.user(),
                request: Arc::clone(request.info()),
                audit_id: header_text::text(request.audit_id()).to_owned(),
                own_account: false,
            },
            deadline: request.record().deadline(),
        }
    }

    /// Condition for repeating the call.
    pub(super) fn retry_condition(&self) -> RetryCondition {
        match self.forwarded.request.is_read_only() {
            true => RetryCondition::Always,
            false => RetryCondition::IfNeverReceived,
        }
    }

    /// Deadline of the client's request.
    pub(super) fn deadline(&self) -> Option<tokio::time::Instant> {
        self.deadline.map(tokio::time::Instant::from_std)
    }

    /// Creates a message to one control service, in the name of the caller.
    pub(super) fn message<T>(&self, member: &Member, message: T) -> tonic::Request<T> {
        let mut call = member.transport.request(message);
        self.forwarded.insert_into(call.metadata_mut());
        spans::inject(call.metadata_mut().as_mut());
        if let Some(deadline) = self.deadline {
            let remaining = deadline.saturating_duration_since(Instant::now());
            // At least a millisecond, because zero means no deadline for some servers.
            call.set_timeout(remaining.max(Duration::from_millis(1)));
        }
        call
    }
}

/// Creates a client without a limit for responses: a write is complete when its response arrives.
pub(super) fn client(service: &GrpcService) -> ObjectsClient<GrpcService> {
    ObjectsClient::new(service.clone())
        .max_decoding_message_size(usize::MAX)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

fn new_call(request: &Parts, body: Bytes) -> Call {
    let info = request.info();
    let target = Target {
        group: info.api_group.clone(),
        version: info.api_version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        namespace: info.namespace.clone(),
        // Not the name in the request info, which can come from a field selector, for authorization only.
        name: info.parts.get(1).cloned().unwrap_or_default(),
        rest: if info.subresource.is_empty() { String::new() } else { info.path_after_subresource() },
    };
    // Below `/watch/` every method is authorized as a watch, but only GET is one.
    let is_plain = match request.method {
        Method::GET => true,
        Method::POST | Method::PUT | Method::PATCH | Method::DELETE => !info.watch_prefix,
        _ => false,
    };
    Call {
        target: Some(target),
        verb: info.verb.clone(),
        query: request.query().to_owned(),
        body,
        content_type: request.header(CONTENT_TYPE).to_owned(),
        accept: request.header(ACCEPT).to_owned(),
        user_agent: request.header(USER_AGENT).to_owned(),
        audit_level: audit_record::level(request).into(),
        method: if is_plain { String::new() } else { request.method.as_str().to_owned() },
    }
}
