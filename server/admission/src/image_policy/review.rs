//! ImageReviews of `imagepolicy.k8s.io/v1alpha1`: requests to the backend and its responses. The functions are pure, and
//! responses are untrusted.

use std::collections::BTreeMap;

use bytes::Bytes;
use portico_gostd::json;
use portico_machinery::Object;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;

const KIND: &str = "ImageReview";
const API_VERSION: &str = "imagepolicy.k8s.io/v1alpha1";

/// Name of the only subresource whose containers are reviewed.
pub(super) const EPHEMERAL_CONTAINERS: &str = "ephemeralcontainers";

/// Part of the key of annotations that the backend receives.
const ANNOTATION_INFIX: &str = ".image-policy.k8s.io/";

/// Spec of an ImageReview.
#[derive(Serialize)]
struct Spec<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    containers: Vec<Container<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
}

#[derive(Serialize)]
struct Container<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    image: &'a str,
}

/// Returns the spec of the review of a pod: its containers, or the ephemeral containers if the subresource is written. The result
/// is JSON, which is also the key of the cached verdict.
pub(super) fn spec(pod: &Object, subresource: &str, namespace: &str) -> serde_json::Result<String> {
    let lists: &[&str] = match subresource {
        EPHEMERAL_CONTAINERS => &["ephemeralContainers"],
        _ => &["containers", "initContainers"],
    };
    let of_list =
        |list| pod.at(&["spec", list]).items().map(|item| Container { image: item.field("image").str() });
    let annotations = pod.at(&["metadata", "annotations"]);
    let reviewed_annotations = annotations.entries().filter(|(key, _)| key.contains(ANNOTATION_INFIX));
    serde_json::to_string(&Spec {
        containers: lists.iter().copied().flat_map(of_list).collect(),
        annotations: reviewed_annotations.map(|(key, value)| (key, value.str())).collect(),
        namespace,
    })
}

/// Returns the body of a request to the backend.
pub(super) fn request_body(spec: &str) -> Bytes {
    let type_and_metadata = format!(r#""kind":"{KIND}","apiVersion":"{API_VERSION}","metadata":{{}}"#);
    format!(r#"{{{type_and_metadata},"spec":{spec},"status":{{"allowed":false}}}}"#).into()
}

/// Verdict of the backend.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Verdict {
    pub(super) allowed: bool,
    reason: String,
    pub(super) audit_annotations: BTreeMap<String, String>,
}

impl Verdict {
    /// Returns the reason why the images may not run; `None` if they may.
    pub(super) fn refusal(&self) -> Option<String> {
        match (self.allowed, self.reason.as_str()) {
            (true, _) => None,
            (false, "") => Some("one or more images rejected by webhook backend".to_owned()),
            (false, reason) => {
                Some(format!("image policy webhook backend denied one or more images: {reason}"))
            }
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Review {
    api_version: String,
    kind: String,
    status: Verdict,
}

/// Reads the verdict from a response. A response without kind and version counts as an ImageReview.
///
/// # Errors
/// The response is invalid; the error is upstream's message.
pub(super) fn parse_response(response: &[u8]) -> Result<Verdict, String> {
    let review: Review = json::from_slice(response).map_err(|error| match error.classify() {
        Category::Data => json::error_text(&error),
        _ => format!("couldn't get version/kind; json parse error: {}", json::error_text(&error)),
    })?;
    let name_or_default =
        |name: String, default: &str| if name.is_empty() { default.to_owned() } else { name };
    let (kind, version) =
        (name_or_default(review.kind, KIND), name_or_default(review.api_version, API_VERSION));
    if kind != KIND || version != API_VERSION {
        return Err(format!("no kind {kind:?} is registered for version {version:?}"));
    }
    Ok(review.status)
}

/// Reads arbitrary bytes as a response, which must not panic.
#[doc(hidden)]
pub fn read_any(response: &[u8]) {
    drop(parse_response(response).map(|verdict| verdict.refusal()));
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{"metadata":{"annotations":{"x.image-policy.k8s.io/ticket":"1","image-policy.k8s.io/no":"2","a":"b"}},
        "spec":{"initContainers":[{"image":"init"}],"containers":[{"image":"a"},{"image":"b"}],"ephemeralContainers":[{"image":"debug"}]}}"#;

    #[test]
    fn a_review_has_the_images_and_the_annotations_about_them() {
        let pod = Object::from_json(POD.as_bytes()).unwrap();
        let annotations = r#""annotations":{"x.image-policy.k8s.io/ticket":"1"},"#;
        for (subresource, images) in [
            ("", r#"{"image":"a"},{"image":"b"},{"image":"init"}"#),
            (EPHEMERAL_CONTAINERS, r#"{"image":"debug"}"#),
        ] {
            let spec = spec(&pod, subresource, "n").unwrap();
            assert_eq!(spec, format!(r#"{{"containers":[{images}],{annotations}"namespace":"n"}}"#));
        }
        let spec = spec(&Object::from_json(b"{}").unwrap(), "", "n").unwrap();
        assert_eq!(
            request_body(&spec),
            r#"{"kind":"ImageReview","apiVersion":"imagepolicy.k8s.io/v1alpha1","metadata":{},"spec":{"namespace":"n"},"status":{"allowed":false}}"#
        );
    }

    #[test]
    fn a_response_allows_or_denies_with_a_reason() {
        let refusal = |answer: &str| parse_response(answer.as_bytes()).map(|verdict| verdict.refusal());
        let rejected = Some("one or more images rejected by webhook backend");
        for (answer, expected) in [
            (
                r#"{"kind":"ImageReview","apiVersion":"imagepolicy.k8s.io/v1alpha1","status":{"allowed":true}}"#,
                None,
            ),
            (r#"{"status":{"allowed":true,"reason":"fine"}}"#, None),
            (
                r#"{"status":{"reason":"too old"}}"#,
                Some("image policy webhook backend denied one or more images: too old"),
            ),
            (r#"{"status":{"allowed":false}}"#, rejected),
            (r#"{"kind":"ImageReview","status":null}"#, rejected),
        ] {
            assert_eq!(refusal(answer), Ok(expected.map(str::to_owned)), "{answer}");
        }
    }

    #[test]
    fn invalid_responses_are_refused() {
        for (answer, error) in [
            ("<html>", "couldn't get version/kind; json parse error: invalid JSON at line 1, column 1"),
            (r#"{"status":{"allowed":"yes"}}"#, "unexpected JSON type"),
            (r#"{"status":{"auditAnnotations":[1]}}"#, "unexpected JSON type"),
            (
                r#"{"kind":"Foo","status":{"allowed":true}}"#,
                "no kind \"Foo\" is registered for version \"imagepolicy.k8s.io/v1alpha1\"",
            ),
            (
                r#"{"kind":"ImageReview","apiVersion":"imagepolicy.k8s.io/v1","status":{"allowed":true}}"#,
                "no kind \"ImageReview\" is registered for version \"imagepolicy.k8s.io/v1\"",
            ),
        ] {
            let refused = parse_response(answer.as_bytes()).expect_err(answer);
            assert!(refused.starts_with(error), "{answer}: {refused}");
        }
    }
}
