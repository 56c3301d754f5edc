//! Reviews by the control service, requested in the facade's own name, for decisions that require objects.

mod access;
mod token;

use std::sync::Arc;
use std::time::Duration;

use portico_machinery::{RequestInfo, Status, UserInfo};
use portico_proto::identity::Forwarded;
use portico_proto::objects::objects_client::ObjectsClient;
use portico_proto::objects::{Call, DoRequest, DoResponse, Target};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::control_services::{CallReason, ControlServices, Member, Repeat, is_answer};
pub use access::AccessAsker;
pub use token::TokenAsker;

const JSON: &str = "application/json";
/// User name of facades in calls to the control service.
const FACADE: &str = "system:portico:facade";

/// Client of reviews. Cheap to clone.
#[derive(Clone)]
pub struct Asker {
    services: ControlServices,
    /// Timeout of a review, for which the client waits.
    timeout: Duration,
}

/// Kind of review.
trait Review: Serialize {
    const GROUP: &'static str;
    const KIND: &'static str;
    const RESOURCE: &'static str;
    type Answered: Default + DeserializeOwned;
}

/// Reason for a missing review. Earlier results are used only while no control service can be reached.
#[derive(Debug, thiserror::Error)]
enum NoReview {
    /// No control service responded.
    #[error("{0}")]
    Unreachable(String),
    /// A control service responded with something other than a review.
    #[error("{0}")]
    Failed(String),
}

impl NoReview {
    fn of(status: &tonic::Status) -> Self {
        let text = CallReason(status).to_string();
        if is_answer(status) { Self::Failed(text) } else { Self::Unreachable(text) }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a, S> {
    api_version: String,
    kind: &'a str,
    spec: &'a S,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Answer<S> {
    status: Option<S>,
}

impl Asker {
    /// Creates a client; `timeout` is `--control-request-timeout`.
    #[must_use]
    pub fn new(services: ControlServices, timeout: Duration) -> Self {
        Self { services, timeout }
    }

    /// Requests a review and returns its status.
    ///
    /// # Errors
    /// [`ReviewError`]
    async fn review<S: Review>(&self, spec: &S) -> Result<S::Answered, NoReview> {
        let call =
            call::<S>(spec).ok_or_else(|| NoReview::Failed("a review cannot be written".to_owned()))?;
        // Reviews change nothing, so they may be repeated at another control service.
        let asked = self.services.call(Repeat::Always, None, |member| self.asked::<S>(member, call.clone()));
        let asked = tokio::time::timeout(self.timeout, asked).await;
        let review = match asked {
            Err(_) => Err(NoReview::Unreachable(format!("no answer within {:?}", self.timeout))),
            Ok(Err(status)) => Err(NoReview::of(&status)),
            Ok(Ok((_, answer))) if answer.code != 201 => {
                let status = Status::from_json(&answer.body).map(|status| status.message);
                Err(NoReview::Failed(
                    status.unwrap_or_else(|| format!("a review was answered {}", answer.code)),
                ))
            }
            Ok(Ok((_, answer))) => read::<S::Answered>(&answer.body)
                .ok_or_else(|| NoReview::Failed("a review cannot be read".to_owned())),
        };
        review.inspect_err(|error| tracing::debug!(%error, kind = S::KIND, "review request failed"))
    }

    async fn asked<S: Review>(&self, member: Arc<Member>, call: Call) -> Result<DoResponse, tonic::Status> {
        let mut request = member.transport.request(DoRequest { call: Some(call) });
        let user = Arc::new(UserInfo::new(FACADE, [portico_auth::authn::FACADES]));
        let path = format!("/apis/{}/v1/{}", S::GROUP, S::RESOURCE);
        let info =
            RequestInfo::parse("POST", &path, "").map_err(|e| tonic::Status::internal(e.to_string()))?;
        let forwarded = Forwarded { user, request: info.into(), audit_id: String::new(), own_account: true };
        forwarded.insert_into(request.metadata_mut());
        request.set_timeout(self.timeout);
        let mut client = ObjectsClient::new(member.transport.calls.clone());
        Ok(client.r#do(request).await?.into_inner())
    }
}

fn call<S: Review>(spec: &S) -> Option<Call> {
    let asked = Asked { api_version: format!("{}/v1", S::GROUP), kind: S::KIND, spec };
    let target = Target {
        group: S::GROUP.to_owned(),
        version: "v1".to_owned(),
        resource: S::RESOURCE.to_owned(),
        ..Target::default()
    };
    Some(Call {
        target: Some(target),
        verb: "create".to_owned(),
        body: serde_json::to_vec(&asked).ok()?.into(),
        content_type: JSON.to_owned(),
        accept: JSON.to_owned(),
        user_agent: "portico-facade".to_owned(),
        ..Call::default()
    })
}

/// Decodes the status of a review, which can have `null` fields, as Go programs write them.
fn read<S: Default + DeserializeOwned>(body: &[u8]) -> Option<S> {
    let answer = portico_gostd::json::from_slice::<Answer<S>>(body);
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
    fn only_what_no_control_service_has_answered_is_unreachable() {
        for code in [Code::Unavailable, Code::DeadlineExceeded, Code::ResourceExhausted, Code::Internal] {
            let mut status = tonic::Status::new(code, "why");
            assert!(matches!(NoReview::of(&status), NoReview::Failed(_)), "{code}");
            // The transport creates this kind of status.
            status.set_source(Arc::new(std::io::Error::from(std::io::ErrorKind::BrokenPipe)));
            let NoReview::Unreachable(text) = NoReview::of(&status) else { panic!("{code}") };
            assert_eq!(text, "the connection was closed", "{code}");
        }
    }

    #[test]
    fn null_fields_of_a_review_are_empty_and_a_review_without_a_status_is_none() {
        let body = br#"{"kind":"TokenReview","metadata":null,"status":{"authenticated":true,"groups":null,"extra":{"k":null},"odd":1}}"#;
        assert_eq!(read(body), Some(ReviewStatus { authenticated: true, ..ReviewStatus::default() }));
        for none in [&b"{}"[..], b"null", br#"{"status":null}"#, br#"{"status":[]}"#, b"no json"] {
            assert_eq!(read::<ReviewStatus>(none), None);
        }
    }
}
