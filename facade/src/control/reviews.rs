//! Reviews by the control service, requested in the facade's own name, for decisions that require objects.

mod access;
mod token;

use std::sync::Arc;
use std::time::Duration;

use portico_gostd::time::format_duration;
use portico_machinery::{RequestInfo, Status, UserInfo};
use portico_proto::identity::ForwardedCaller;
use portico_proto::objects::objects_client::ObjectsClient;
use portico_proto::objects::{Call, DoRequest, DoResponse, Target};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::control_services::{CallReason, ControlServices, Member, RetryCondition, is_from_control_service};
pub use access::AccessReviewClient;
pub use token::TokenReviewClient;

const JSON: &str = "application/json";
/// User name of facades in calls to the control service.
const FACADE_USER: &str = "system:portico:facade";

/// Client of reviews. Cheap to clone.
#[derive(Clone)]
pub struct ReviewClient {
    services: ControlServices,
    /// Timeout of a review, for which the client waits.
    timeout: Duration,
}

/// Kind of review.
trait Review: Serialize {
    const GROUP: &'static str;
    const KIND: &'static str;
    const RESOURCE: &'static str;
    type Status: Default + DeserializeOwned;
}

/// Reason for a missing review. Earlier results are used only while no control service can be reached.
#[derive(Debug, thiserror::Error)]
enum ReviewError {
    /// No control service responded.
    #[error("{0}")]
    Unreachable(String),
    /// A control service responded with something other than a review.
    #[error("{0}")]
    Failed(String),
}

impl ReviewError {
    fn from_status(status: &tonic::Status) -> Self {
        let text = CallReason(status).to_string();
        if is_from_control_service(status) { Self::Failed(text) } else { Self::Unreachable(text) }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReviewRequest<'a, S> {
    api_version: String,
    kind: &'a str,
    spec: &'a S,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct ReviewResponse<S> {
    status: Option<S>,
}

impl ReviewClient {
    /// Creates a client; `timeout` is `--control-request-timeout`.
    #[must_use]
    pub fn new(services: ControlServices, timeout: Duration) -> Self {
        Self { services, timeout }
    }

    /// Requests a review and returns its status.
    ///
    /// # Errors
    /// [`ReviewError`]
    async fn review<S: Review>(&self, spec: &S) -> Result<S::Status, ReviewError> {
        let call =
            encode_call::<S>(spec).ok_or_else(|| ReviewError::Failed("cannot encode a review".to_owned()))?;
        // Reviews change nothing, so they may be repeated at another control service.
        let call_result =
            self.services.call(RetryCondition::Always, None, |member| self.send::<S>(member, call.clone()));
        let call_result = tokio::time::timeout(self.timeout, call_result).await;
        let review = match call_result {
            Err(_) => {
                Err(ReviewError::Unreachable(format!("no response within {}", format_duration(self.timeout))))
            }
            Ok(Err(status)) => Err(ReviewError::from_status(&status)),
            Ok(Ok((_, answer))) if answer.code != 201 => {
                let status = Status::from_json(&answer.body).map(|status| status.message);
                Err(ReviewError::Failed(
                    status.unwrap_or_else(|| format!("review failed with code {}", answer.code)),
                ))
            }
            Ok(Ok((_, answer))) => decode_status::<S::Status>(&answer.body)
                .ok_or_else(|| ReviewError::Failed("cannot decode the response to a review".to_owned())),
        };
        review.inspect_err(|error| tracing::debug!(%error, kind = S::KIND, "review request failed"))
    }

    async fn send<S: Review>(&self, member: Arc<Member>, call: Call) -> Result<DoResponse, tonic::Status> {
        let mut request = member.transport.request(DoRequest { call: Some(call) });
        let user = Arc::new(UserInfo::new(FACADE_USER, [portico_auth::authn::FACADES_GROUP]));
        let path = format!("/apis/{}/v1/{}", S::GROUP, S::RESOURCE);
        let info =
            RequestInfo::parse("POST", &path, "").map_err(|e| tonic::Status::internal(e.to_string()))?;
        let forwarded =
            ForwardedCaller { user, request: info.into(), audit_id: String::new(), own_account: true };
        forwarded.insert_into(request.metadata_mut());
        request.set_timeout(self.timeout);
        let mut client = ObjectsClient::new(member.transport.calls.clone());
        Ok(client.r#do(request).await?.into_inner())
    }
}

fn encode_call<S: Review>(spec: &S) -> Option<Call> {
    let request = ReviewRequest { api_version: format!("{}/v1", S::GROUP), kind: S::KIND, spec };
    let target = Target {
        group: S::GROUP.to_owned(),
        version: "v1".to_owned(),
        resource: S::RESOURCE.to_owned(),
        ..Target::default()
    };
    Some(Call {
        target: Some(target),
        verb: "create".to_owned(),
        body: serde_json::to_vec(&request).ok()?.into(),
        content_type: JSON.to_owned(),
        accept: JSON.to_owned(),
        user_agent: "portico-facade".to_owned(),
        ..Call::default()
    })
}

/// Decodes the status of a review, which can have `null` fields, as Go programs write them.
fn decode_status<S: Default + DeserializeOwned>(body: &[u8]) -> Option<S> {
    let answer = portico_gostd::json::from_slice::<ReviewResponse<S>>(body);
    answer.inspect_err(|error| tracing::debug!(%error, "cannot decode a review")).ok()?.status
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(default)]
    struct ReviewStatus {
        authenticated: bool,
        groups: Vec<String>,
        extra: std::collections::BTreeMap<String, Vec<String>>,
    }

    #[test]
    fn only_calls_without_a_response_are_unreachable() {
        for code in [Code::Unavailable, Code::DeadlineExceeded, Code::ResourceExhausted, Code::Internal] {
            let mut status = tonic::Status::new(code, "why");
            assert!(matches!(ReviewError::from_status(&status), ReviewError::Failed(_)), "{code}");
            // The transport creates this kind of status.
            status.set_source(Arc::new(std::io::Error::from(std::io::ErrorKind::BrokenPipe)));
            let ReviewError::Unreachable(text) = ReviewError::from_status(&status) else { panic!("{code}") };
            assert_eq!(text, "the connection was closed", "{code}");
        }
    }

    #[test]
    fn null_fields_of_a_review_are_empty_and_the_status_is_required() {
        let body = br#"{"kind":"TokenReview","metadata":null,"status":{"authenticated":true,"groups":null,"extra":{"k":null},"odd":1}}"#;
        assert_eq!(
            decode_status(body),
            Some(ReviewStatus { authenticated: true, ..ReviewStatus::default() })
        );
        for invalid in [&b"{}"[..], b"null", br#"{"status":null}"#, br#"{"status":[]}"#, b"no json"] {
            assert_eq!(decode_status::<ReviewStatus>(invalid), None);
        }
    }
}
