//! Authorization webhooks: encoding and decoding of SubjectAccessReviews in both versions. Performs no I/O;
//! responses are untrusted.
//!
//! Upstream rules: plugin/pkg/authorizer/webhook.

use std::collections::BTreeMap;

use portico_machinery::selector::{FieldSelector, LabelSelector, Operator};
use portico_machinery::{Attributes, RequestInfo};
use serde::{Deserialize, Serialize};

use super::Decision;

const KIND: &str = "SubjectAccessReview";
const GROUP: &str = "authorization.k8s.io";
/// Size of the caller-supplied attributes of a review that is cached.
///
/// `maxControlledAttrCacheSize` of kube-apiserver.
///
/// Limit (Authentication and authorization, bytes): the webhook is called for each request.
const MAX_CALLER_BYTES: usize = 10_000;

/// Version of the review API that a webhook supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVersion {
    /// `authorization.k8s.io/v1`
    V1,
    /// `authorization.k8s.io/v1beta1`
    V1beta1,
}

impl ReviewVersion {
    /// Returns the version of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::V1, Self::V1beta1].into_iter().find(|version| version.name() == name)
    }

    /// Returns the name of the version.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1beta1 => "v1beta1",
        }
    }
}

/// Spec of a SubjectAccessReview in `authorization.k8s.io/v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewSpec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_attributes: Option<Resource<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    non_resource_attributes: Option<Path<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    user: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<&'a BTreeMap<String, Vec<String>>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    verb: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    subresource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field_selector: Option<Requirements>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_selector: Option<Requirements>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Path<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    path: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    verb: &'a str,
}

/// Requirements of a selector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Requirements {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Requirement {
    key: String,
    operator: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
}

/// Spec in v1beta1, where the field of the groups has another name.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct V1beta1Spec<'s, 'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_attributes: Option<&'s Resource<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    non_resource_attributes: Option<&'s Path<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    user: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    group: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<&'a BTreeMap<String, Vec<String>>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'s, S> {
    kind: &'static str,
    api_version: String,
    metadata: Empty,
    spec: &'s S,
    status: EmptyStatus,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct EmptyStatus {
    allowed: bool,
}

impl<'a> ReviewSpec<'a> {
    /// Returns the spec for these attributes.
    #[must_use]
    pub fn from_attributes(attributes: &'a Attributes) -> Self {
        let (user, request) = (&attributes.user, &*attributes.request);
        Self {
            resource_attributes: request.is_resource_request.then(|| Resource::from_request(request)),
            non_resource_attributes: (!request.is_resource_request)
                .then_some(Path { path: &request.path, verb: &request.verb }),
            user: &user.name,
            groups: &user.groups,
            extra: Some(&user.extra).filter(|extra| !extra.is_empty()),
            uid: &user.uid,
        }
    }

    /// Encodes the spec as JSON, which is also the key of its cached answer.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Encoding strings, lists and maps of strings cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Encodes a SubjectAccessReview in a version.
    #[must_use]
    pub fn encode_review(&self, version: ReviewVersion) -> Vec<u8> {
        match version {
            ReviewVersion::V1 => encode_object(version, self),
            ReviewVersion::V1beta1 => {
                let older = V1beta1Spec {
                    resource_attributes: self.resource_attributes.as_ref(),
                    non_resource_attributes: self.non_resource_attributes.as_ref(),
                    user: self.user,
                    group: self.groups,
                    extra: self.extra,
                    uid: self.uid,
                };
                encode_object(version, &older)
            }
        }
    }
}

fn encode_object<S: Serialize>(version: ReviewVersion, spec: &S) -> Vec<u8> {
    let api_version = format!("{GROUP}/{}", version.name());
    let status = EmptyStatus { allowed: false };
    let review = Review { kind: KIND, api_version, metadata: Empty {}, spec, status };
    serde_json::to_vec(&review).unwrap_or_default()
}

impl<'a> Resource<'a> {
    fn from_request(request: &'a RequestInfo) -> Self {
        Self {
            namespace: &request.namespace,
            verb: &request.verb,
            group: &request.api_group,
            version: &request.api_version,
            resource: &request.resource,
            subresource: &request.subresource,
            name: &request.name,
            field_selector: field_requirements(&request.field_selector),
            label_selector: label_requirements(&request.label_selector),
        }
    }
}

/// Returns the requirements of a field selector. An invalid selector is omitted: the review then asks about more objects.
fn field_requirements(selector: &str) -> Option<Requirements> {
    let selector = FieldSelector::parse(selector).ok()?;
    let terms = selector.terms().iter().map(|term| Requirement {
        key: term.field.clone(),
        operator: if term.negated { "NotIn" } else { "In" },
        values: vec![term.value.clone()],
    });
    non_empty(terms.collect())
}

fn label_requirements(selector: &str) -> Option<Requirements> {
    let selector = LabelSelector::parse(selector).ok()?;
    let terms = selector.requirements().iter().filter_map(|term| {
        let operator = match term.operator {
            Operator::Equals | Operator::In => "In",
            Operator::NotEquals | Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
            // The review API has no such operators; without them the review asks about more objects.
            Operator::GreaterThan | Operator::LessThan => return None,
        };
        Some(Requirement { key: term.key.clone(), operator, values: term.values.clone() })
    });
    non_empty(terms.collect())
}

fn non_empty(requirements: Vec<Requirement>) -> Option<Requirements> {
    (!requirements.is_empty()).then_some(Requirements { requirements })
}

/// True if the answer may be cached: the attributes that callers can make arbitrarily long are short (`shouldCache`).
#[must_use]
pub fn is_cacheable(attributes: &Attributes) -> bool {
    let r = &attributes.request;
    let texts =
        [&r.namespace, &r.verb, &r.api_group, &r.api_version, &r.resource, &r.subresource, &r.name, &r.path];
    texts.iter().map(|text| text.len()).sum::<usize>() < MAX_CALLER_BYTES
}

/// Status of a SubjectAccessReview in the response of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReviewAnswer {
    /// True if the request is allowed.
    pub allowed: bool,
    /// True if the request is denied and later authorizers must not be called.
    pub denied: bool,
    /// Reason of the decision.
    pub reason: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ReviewResponse {
    kind: String,
    api_version: String,
    status: ReviewAnswer,
}

impl ReviewAnswer {
    /// Parses a review of this version.
    ///
    /// # Errors
    /// Returns the reason why the response is not a valid review.
    pub fn parse(version: ReviewVersion, body: &[u8]) -> Result<Self, String> {
        let response: ReviewResponse = portico_gostd::json::from_slice(body).map_err(|error| {
            if error.is_syntax() || error.is_eof() {
                return format!(
                    "couldn't get version/kind; json parse error: {}",
                    portico_gostd::json::error_text(&error)
                );
            }
            portico_gostd::json::error_text(&error)
        })?;
        let expected = format!("{GROUP}/{}", version.name());
        // A response without kind or version has those of the request.
        let matches = |actual: &str, required: &str| actual.is_empty() || actual == required;
        if matches(&response.kind, KIND) && matches(&response.api_version, &expected) {
            return Ok(response.status);
        }
        let (kind, api_version) = (&response.kind, &response.api_version);
        let version = if api_version.is_empty() { &expected } else { api_version };
        Err(format!("no kind {kind:?} is registered for version {version:?}"))
    }

    /// Converts the answer to a decision.
    #[must_use]
    pub fn decision(&self) -> Decision {
        let reason = self.reason.clone();
        match (self.allowed, self.denied) {
            (true, true) => Decision::deny(reason)
                .with_error("webhook subject access review returned both allow and deny response"),
            (false, true) => Decision::deny(reason),
            (true, false) => Decision::allow(reason),
            (false, false) => Decision::no_opinion(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::{GroupResource, UserInfo};

    use super::*;

    fn alice() -> UserInfo {
        let extra = BTreeMap::from([("k".to_owned(), vec!["v".to_owned()])]);
        UserInfo { extra, uid: "u1".to_owned(), ..UserInfo::new("alice", ["dev"]) }
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_review_has_upstreams_fields_in_either_version() {
        let path = Attributes::path(alice(), "get", "/x");
        let v1 = text(ReviewSpec::from_attributes(&path).encode_review(ReviewVersion::V1));
        assert_eq!(
            v1,
            r#"{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{"nonResourceAttributes":{"path":"/x","verb":"get"},"user":"alice","groups":["dev"],"extra":{"k":["v"]},"uid":"u1"},"status":{"allowed":false}}"#
        );
        let older = text(ReviewSpec::from_attributes(&path).encode_review(ReviewVersion::V1beta1));
        assert_eq!(older, v1.replace("/v1\"", "/v1beta1\"").replace("groups", "group"));
    }

    #[test]
    fn selectors_are_sent_term_by_term() {
        let pods = GroupResource::new("", "pods");
        let mut question = Attributes::resource(UserInfo::new("u", [""; 0]), "list", &pods, "n", "");
        let request = std::sync::Arc::make_mut(&mut question.request);
        "spec.nodeName=a,metadata.name!=b".clone_into(&mut request.field_selector);
        "a in (x,y),!b,c,d!=z".clone_into(&mut request.label_selector);
        let json = ReviewSpec::from_attributes(&question).to_json();
        assert_eq!(
            json,
            r#"{"resourceAttributes":{"namespace":"n","verb":"list","resource":"pods","fieldSelector":{"requirements":[{"key":"metadata.name","operator":"NotIn","values":["b"]},{"key":"spec.nodeName","operator":"In","values":["a"]}]},"labelSelector":{"requirements":[{"key":"a","operator":"In","values":["x","y"]},{"key":"b","operator":"DoesNotExist"},{"key":"c","operator":"Exists"},{"key":"d","operator":"NotIn","values":["z"]}]}},"user":"u"}"#
        );
        "a in (".clone_into(&mut std::sync::Arc::make_mut(&mut question.request).label_selector);
        assert!(!ReviewSpec::from_attributes(&question).to_json().contains("labelSelector"));
    }

    #[test]
    fn an_answer_is_a_decision() {
        let decision = |status: &str| {
            ReviewAnswer::parse(ReviewVersion::V1, format!(r#"{{"status":{status}}}"#).as_bytes())
                .unwrap()
                .decision()
        };
        assert_eq!(decision(r#"{"allowed":true,"reason":"r"}"#), Decision::allow("r"));
        assert_eq!(decision(r#"{"denied":true,"reason":"r"}"#), Decision::deny("r"));
        assert_eq!(decision("null"), Decision::no_opinion(""));
        let both = decision(r#"{"allowed":true,"denied":true}"#);
        assert!(!both.is_allowed() && both.error.contains("both allow and deny"));
    }

    #[test]
    fn invalid_reviews_are_refused() {
        for (body, words) in [
            ("<html>", "couldn't get version/kind; json parse error"),
            (r#"{"status":{"allowed":"yes"}}"#, ""),
            (r#"{"kind":"Pod","apiVersion":"v1"}"#, r#"no kind "Pod" is registered for version "v1""#),
            (
                r#"{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","status":{"allowed":true}}"#,
                "is registered for version \"authorization.k8s.io/v1beta1\"",
            ),
        ] {
            let refused = ReviewAnswer::parse(ReviewVersion::V1, body.as_bytes()).expect_err(body);
            assert!(refused.contains(words), "{body}: {refused}");
        }
    }

    #[test]
    fn long_attributes_are_not_cached() {
        let attributes = |length: usize| Attributes::path(alice(), "get", &"x".repeat(length));
        assert!(is_cacheable(&attributes(9_000)));
        assert!(!is_cacheable(&attributes(10_000)));
    }
}
