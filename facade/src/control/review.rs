//! Asks the control service whose token a token is: a TokenReview, in the facade's own name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use portico_auth::authn::{Reviewer, Reviewing};
use portico_machinery::{RequestInfo, UserInfo};
use portico_proto::identity::Forwarded;
use portico_proto::objects::objects_client::ObjectsClient;
use portico_proto::objects::{Call, DoRequest, Target};
use serde::{Deserialize, Serialize};

use crate::transport::ControlTransport;

const GROUP: &str = "authentication.k8s.io";
const PATH: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const JSON: &str = "application/json";
/// The name of facades towards the control service.
const FACADE: &str = "system:portico:facade";
/// How long a review may take: the caller waits.
const TIMEOUT: Duration = Duration::from_secs(10);

/// See the module.
pub struct ControlReviewer {
    transport: ControlTransport,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a> {
    api_version: &'a str,
    kind: &'a str,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Spec<'a> {
    token: &'a str,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answered {
    status: Said,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    authenticated: bool,
    user: User,
    error: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl ControlReviewer {
    /// Asks over this transport.
    #[must_use]
    pub fn new(transport: ControlTransport) -> Self {
        Self { transport }
    }

    fn request(&self, token: &str) -> Option<tonic::Request<DoRequest>> {
        let spec = Spec { token };
        let asked = Asked { api_version: "authentication.k8s.io/v1", kind: "TokenReview", spec };
        let target = Target {
            group: GROUP.to_owned(),
            version: "v1".to_owned(),
            resource: "tokenreviews".to_owned(),
            ..Target::default()
        };
        let call = Call {
            target: Some(target),
            verb: "create".to_owned(),
            body: serde_json::to_vec(&asked).ok()?.into(),
            content_type: JSON.to_owned(),
            accept: JSON.to_owned(),
            user_agent: "portico-facade".to_owned(),
            ..Call::default()
        };
        let mut request = self.transport.request(DoRequest { call: Some(call) });
        let user = Arc::new(UserInfo::new(FACADE, [portico_auth::authn::FACADES]));
        let forwarded =
            Forwarded { user, request: RequestInfo::parse("POST", PATH, "").ok()?, audit_id: String::new() };
        forwarded.insert_into(request.metadata_mut());
        request.set_timeout(TIMEOUT);
        Some(request)
    }
}

impl Reviewer for ControlReviewer {
    fn review<'a>(&'a self, token: &'a str) -> Reviewing<'a> {
        Box::pin(async move {
            let mut client = ObjectsClient::new(self.transport.calls.clone());
            let asked = tokio::time::timeout(TIMEOUT, client.r#do(self.request(token)?)).await.ok()?;
            let answer =
                asked.inspect_err(|e| tracing::debug!(error = %e, "a token is not reviewed")).ok()?;
            let answer = answer.into_inner();
            if answer.code != 201 {
                return None;
            }
            let said = serde_json::from_slice::<Answered>(&answer.body).ok()?.status;
            if !said.authenticated {
                return Some(Err(said.error));
            }
            let User { username, uid, groups, extra } = said.user;
            Some(Ok(UserInfo { name: username, uid, groups, extra }))
        })
    }
}
