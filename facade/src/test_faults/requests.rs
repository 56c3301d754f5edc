//! Selection of requests by a rule: by verb, resource, object and user.

use std::sync::Arc;

use http::header::USER_AGENT;
use portico_machinery::{RequestInfo, UserInfo};
use serde::{Deserialize, Serialize};

use crate::request::RequestView;

/// Verbs of requests for resources.
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// A selection of requests for resources; a field that is not set matches anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestMatch {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    verbs: Vec<String>,
    /// Empty for the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_group: Option<String>,
    /// Plural name.
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    /// Empty for requests without a subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    subresource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    /// Name in the path, which create requests do not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// Prefix of the user agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<String>,
}

/// Properties of a request for a resource that rules match.
#[derive(Clone, Debug, Default)]
pub struct MatchedRequest {
    /// Verb, resource, name and so on.
    pub info: Arc<RequestInfo>,
    pub(super) user: Arc<UserInfo>,
    pub(super) agent: String,
}

impl MatchedRequest {
    /// Reads the properties of an authenticated request.
    pub fn from_request(request: &impl RequestView) -> Self {
        Self {
            info: Arc::clone(request.info()),
            user: request.user(),
            agent: request.header(USER_AGENT).to_owned(),
        }
    }
}

impl RequestMatch {
    /// True if no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if requests with one of these verbs can match.
    pub fn can_match_verbs(&self, verbs: &[&str]) -> bool {
        self.verbs.is_empty() || self.verbs.iter().any(|verb| verbs.contains(&verb.as_str()))
    }

    /// True if the request matches.
    pub fn matches(&self, request: &MatchedRequest) -> bool {
        let info = &request.info;
        let is_match =
            |expected: &Option<String>, actual: &str| expected.as_deref().is_none_or(|text| text == actual);
        info.is_resource_request
            && self.can_match_verbs(&[&info.verb])
            && is_match(&self.api_group, &info.api_group)
            && is_match(&self.resource, &info.resource)
            && is_match(&self.subresource, &info.subresource)
            && is_match(&self.namespace, &info.namespace)
            && is_match(&self.name, &info.name)
            && is_match(&self.user, &request.user.name)
            && self.user_agent.as_deref().is_none_or(|prefix| request.agent.starts_with(prefix))
    }

    /// Validates the verbs. Returns the message of the error.
    pub fn validate(&self) -> Result<(), String> {
        match self.verbs.iter().find(|verb| !VERBS.contains(&verb.as_str())) {
            Some(verb) => Err(format!("match.verbs: {verb:?} is not one of {}", VERBS.join(", "))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched_request(method: &str, path: &str) -> MatchedRequest {
        let info = RequestInfo::parse(method, path, "").unwrap().into();
        let user = Arc::new(UserInfo::new("alice", ["dev"]));
        MatchedRequest { info, user, agent: "manager/v1 (linux)".to_owned() }
    }

    #[test]
    fn fields_that_are_not_set_match_anything_and_those_that_are_must_match() {
        let status = matched_request("PUT", "/apis/apps/v1/namespaces/a/deployments/web/status");
        let core = matched_request("GET", "/api/v1/namespaces/a/pods");
        let path = matched_request("GET", "/healthz");
        for (text, matches_status, matches_core) in [
            ("{}", true, true),
            (r#"{"verbs": ["update", "patch"]}"#, true, false),
            (r#"{"apiGroup": ""}"#, false, true),
            (r#"{"apiGroup": "apps", "resource": "deployments"}"#, true, false),
            (r#"{"subresource": ""}"#, false, true),
            (r#"{"subresource": "status", "name": "web"}"#, true, false),
            (r#"{"namespace": "b"}"#, false, false),
            (r#"{"user": "alice", "userAgent": "manager/"}"#, true, true),
            (r#"{"user": "bob"}"#, false, false),
            (r#"{"userAgent": "v1"}"#, false, false),
        ] {
            let requests: RequestMatch = serde_json::from_str(text).unwrap();
            assert_eq!(requests.matches(&status), matches_status, "{text}");
            assert_eq!(requests.matches(&core), matches_core, "{text}");
            assert!(!requests.matches(&path), "{text}");
        }
    }
}
