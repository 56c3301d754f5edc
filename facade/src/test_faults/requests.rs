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
pub struct Requests {
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
pub struct Asked {
    /// Verb, resource, name and so on.
    pub info: Arc<RequestInfo>,
    pub(super) user: Arc<UserInfo>,
    pub(super) agent: String,
}

impl Asked {
    /// Reads the properties of an authenticated request.
    pub fn of(request: &impl RequestView) -> Self {
        Self {
            info: Arc::clone(request.info()),
            user: request.user(),
            agent: request.header(USER_AGENT).to_owned(),
        }
    }
}

impl Requests {
    /// True if no field is set.
    pub fn is_every(&self) -> bool {
        *self == Self::default()
    }

    /// True if requests with one of these verbs can match.
    pub fn may_be_any_of(&self, verbs: &[&str]) -> bool {
        self.verbs.is_empty() || self.verbs.iter().any(|verb| verbs.contains(&verb.as_str()))
    }

    /// True if the request matches.
    pub fn takes(&self, asked: &Asked) -> bool {
        let info = &asked.info;
        let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|text| text == found);
        info.is_resource_request
            && self.may_be_any_of(&[&info.verb])
            && is(&self.api_group, &info.api_group)
            && is(&self.resource, &info.resource)
            && is(&self.subresource, &info.subresource)
            && is(&self.namespace, &info.namespace)
            && is(&self.name, &info.name)
            && is(&self.user, &asked.user.name)
            && self.user_agent.as_deref().is_none_or(|beginning| asked.agent.starts_with(beginning))
    }

    /// Validates the verbs. Returns the message of the error.
    pub fn check(&self) -> Result<(), String> {
        match self.verbs.iter().find(|verb| !VERBS.contains(&verb.as_str())) {
            Some(verb) => Err(format!("match.verbs: {verb:?} is not one of {}", VERBS.join(", "))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, path: &str) -> Asked {
        let info = RequestInfo::parse(method, path, "").unwrap().into();
        let user = Arc::new(UserInfo::new("alice", ["dev"]));
        Asked { info, user, agent: "manager/v1 (linux)".to_owned() }
    }

    #[test]
    fn fields_that_are_not_set_match_anything_and_those_that_are_must_match() {
        let status = asked("PUT", "/apis/apps/v1/namespaces/a/deployments/web/status");
        let core = asked("GET", "/api/v1/namespaces/a/pods");
        let path = asked("GET", "/healthz");
        for (text, takes_status, takes_core) in [
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
            let requests: Requests = serde_json::from_str(text).unwrap();
            assert_eq!(requests.takes(&status), takes_status, "{text}");
            assert_eq!(requests.takes(&core), takes_core, "{text}");
            assert!(!requests.takes(&path), "{text}");
        }
    }
}
