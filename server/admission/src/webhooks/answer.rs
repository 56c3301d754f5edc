//! AdmissionReview responses (upstream's `VerifyAdmissionResponse`). Pure functions: the input is bytes, the output an answer
//! or an error.

use std::collections::BTreeMap;

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine};
use portico_gostd::json;
use portico_machinery::Status;
use portico_machinery::status::{Details, ListMeta};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

use super::configuration::ReviewVersion;

/// Verified answer of a webhook.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReviewAnswer {
    pub(super) allowed: bool,
    /// `None` if the webhook does not change the object.
    pub(super) patch: Option<Patch>,
    /// Status with which the webhook denied the request.
    pub(super) denial: Option<Denial>,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: BTreeMap<String, String>,
}

/// Patch of a webhook.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Patch {
    pub(super) json: Vec<u8>,
    /// [`JSON_PATCH`], or an unknown type.
    pub(super) patch_type: String,
}

/// The only valid type of patches.
pub(super) const JSON_PATCH: &str = "JSONPatch";

const KIND: &str = "AdmissionReview";

/// Properties of a review request that its answer must match.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedReview<'a> {
    pub(super) version: ReviewVersion,
    pub(super) uid: &'a str,
    /// True if the webhook may change the object.
    pub(super) mutates: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Review {
    api_version: Option<String>,
    kind: Option<String>,
    response: Option<Response>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Response {
    uid: Option<String>,
    allowed: Option<bool>,
    status: Option<Denial>,
    patch: Option<Base64>,
    patch_type: Option<String>,
    audit_annotations: Option<BTreeMap<String, String>>,
    warnings: Option<Vec<String>>,
}

/// Bytes encoded as base64.
#[derive(Default)]
struct Base64(Vec<u8>);

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // Go ignores line ends.
        let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
        let length = text.len();
        STANDARD.decode(text).map(Self).map_err(|error| {
            let at = match error {
                DecodeError::InvalidByte(at, _) => at,
                _ => length,
            };
            D::Error::custom(format!("{BASE64} at input byte {at}"))
        })
    }
}

const BASE64: &str = "illegal base64 data";

/// Returns the error message for a body that is not a review.
fn json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = if text.starts_with(BASE64) { text } else { json::error_text(error) };
    match error.classify() {
        Category::Data => format!("failed to call webhook: {message}"),
        _ => format!("failed to call webhook: couldn't get version/kind; json parse error: {message}"),
    }
}

/// Status in a response, of which every field is optional.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Denial {
    metadata: Option<ListMeta>,
    message: Option<String>,
    reason: Option<String>,
    details: Option<Details>,
    code: Option<i64>,
}

impl ExpectedReview<'_> {
    /// Decodes and verifies a response.
    ///
    /// # Errors
    /// The response is invalid; the error is upstream's message.
    pub(super) fn read(self, body: &[u8]) -> Result<ReviewAnswer, String> {
        let review: Review = json::from_slice(body).map_err(|error| json_error(&error))?;
        self.check_kind(&review).map_err(|error| format!("failed to call webhook: {error}"))?;
        self.verify(review).map_err(|error| format!("received invalid webhook response: {error}"))
    }

    /// Checks that upstream's scheme for reviews knows the kind, and that the kind is the one that was sent. Missing kinds and
    /// versions default to those that were sent.
    fn check_kind(self, review: &Review) -> Result<(), String> {
        let expected = self.version.api_version();
        let name_or_default = |name: &Option<String>, default: &'static str| {
            name.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        let (api_version, kind) =
            (name_or_default(&review.api_version, expected), name_or_default(&review.kind, KIND));
        if kind != KIND || !ReviewVersion::ALL.iter().any(|version| version.api_version() == api_version) {
            return Err(format!("no kind {kind:?} is registered for version {api_version:?}"));
        }
        if api_version != expected {
            let go_type = |api_version: &str| api_version.replace("admission.k8s.io/", "") + "." + KIND;
            let (actual, wanted_type) = (go_type(&api_version), go_type(expected));
            return Err(format!("converting ({actual}) to ({wanted_type}): unknown conversion"));
        }
        Ok(())
    }

    fn verify(self, review: Review) -> Result<ReviewAnswer, String> {
        let (api_version, kind) = (review.api_version.unwrap_or_default(), review.kind.unwrap_or_default());
        let response = review.response.ok_or("webhook response was absent")?;
        let patch = response.patch.unwrap_or_default().0;
        if self.version == ReviewVersion::V1 {
            self.check_identity(response.uid.as_deref().unwrap_or_default(), &api_version, &kind)?;
            self.check_patch(&patch, response.patch_type.as_deref())?;
        }
        let patch_type = match self.version {
            ReviewVersion::V1 => response.patch_type.unwrap_or_default(),
            // A patch in v1beta1 need not have a type, and only one type exists.
            ReviewVersion::V1Beta1 => JSON_PATCH.to_owned(),
        };
        Ok(ReviewAnswer {
            allowed: response.allowed.unwrap_or_default(),
            patch: Some(Patch { json: patch, patch_type })
                .filter(|patch| self.mutates && !patch.json.is_empty()),
            denial: response.status,
            warnings: response.warnings.unwrap_or_default(),
            annotations: response.audit_annotations.unwrap_or_default(),
        })
    }

    fn check_identity(self, uid: &str, api_version: &str, kind: &str) -> Result<(), String> {
        if uid != self.uid {
            return Err(format!("expected response.uid={:?}, got {uid:?}", self.uid));
        }
        let expected = self.version.api_version();
        if api_version != expected || kind != KIND {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            return Err(format!(
                "expected webhook response of {expected}, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
            ));
        }
        Ok(())
    }

    fn check_patch(self, patch: &[u8], patch_type: Option<&str>) -> Result<(), String> {
        let error = match (self.mutates, patch.is_empty(), patch_type) {
            (true, false, None) => "webhook returned response.patch but not response.patchType",
            (true, true, Some(_)) => "webhook returned response.patchType but not response.patch",
            (true, false, Some("")) => "webhook returned invalid response.patchType of \"\"",
            (false, false, _) => "validating webhook may not return response.patch",
            (false, true, Some(_)) => "validating webhook may not return response.patchType",
            _ => return Ok(()),
        };
        Err(error.to_owned())
    }
}

/// Returns the error for the caller: the status of the webhook, with a message that names the webhook (upstream's `ToStatusErr`).
pub(super) fn denial_status(webhook: &str, denial: Option<Denial>) -> Box<Status> {
    let Denial { metadata, message, reason, details, code } = denial.unwrap_or_default();
    let prefix = format!("admission webhook {webhook:?} denied the request");
    let detail = [message, reason.clone()].into_iter().flatten().find(|text| !text.is_empty());
    let message = match detail {
        Some(message) => format!("{prefix}: {message}"),
        None => format!("{prefix} without explanation"),
    };
    let mut status = Status::bad_request(message);
    status.metadata = metadata.unwrap_or_default();
    status.reason = reason.unwrap_or_default();
    status.details = details;
    // Codes that are not errors are replaced by 400.
    status.code = code
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| (400..1000).contains(code))
        .unwrap_or(400);
    Box::new(status)
}

/// Reads arbitrary bytes as responses of each kind, which must not panic.
#[doc(hidden)]
pub fn read_any(body: &[u8]) {
    for version in [ReviewVersion::V1, ReviewVersion::V1Beta1] {
        for mutates in [true, false] {
            if let Ok(answer) = (ExpectedReview { version, uid: "u", mutates }).read(body) {
                drop(denial_status("w", answer.denial));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(version: ReviewVersion, mutates: bool, response: &str) -> Result<ReviewAnswer, String> {
        let api_version = version.api_version();
        let body =
            format!(r#"{{"kind":"AdmissionReview","apiVersion":"{api_version}","response":{response}}}"#);
        ExpectedReview { version, uid: "u", mutates }.read(body.as_bytes())
    }

    #[test]
    fn an_answer_must_match_its_request() {
        let table = [
            (true, "null", "webhook response was absent"),
            (true, r#"{"uid":"v"}"#, r#"expected response.uid="u", got "v""#),
            (
                true,
                r#"{"uid":"u","patch":"W10="}"#,
                "webhook returned response.patch but not response.patchType",
            ),
            (
                true,
                r#"{"uid":"u","patchType":"JSONPatch"}"#,
                "webhook returned response.patchType but not response.patch",
            ),
            (
                true,
                r#"{"uid":"u","patch":"W10=","patchType":""}"#,
                "webhook returned invalid response.patchType of \"\"",
            ),
            (false, r#"{"uid":"u","patch":"W10="}"#, "validating webhook may not return response.patch"),
            (false, r#"{"uid":"u","patchType":""}"#, "validating webhook may not return response.patchType"),
        ];
        for (mutates, response, expected) in table {
            let expected = format!("received invalid webhook response: {expected}");
            assert_eq!(read(ReviewVersion::V1, mutates, response).unwrap_err(), expected, "{response}");
        }
        assert!(read(ReviewVersion::V1Beta1, true, r#"{"patch":"W10="}"#).unwrap().patch.is_some());
        assert!(read(ReviewVersion::V1Beta1, false, r#"{"patch":"W10="}"#).unwrap().patch.is_none());
        let other = ExpectedReview { version: ReviewVersion::V1, uid: "u", mutates: false };
        for (body, expected) in [
            (
                r#"{"kind":"Pod","apiVersion":"v1","response":{"uid":"u"}}"#,
                r#"failed to call webhook: no kind "Pod" is registered for version "v1""#,
            ),
            (
                r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","response":{"uid":"u"}}"#,
                "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
            ),
            (
                r#"{"apiVersion":"admission.k8s.io/v1","response":{"uid":"u"}}"#,
                "received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1, Kind=",
            ),
            ("null", "received invalid webhook response: webhook response was absent"),
            (r#"{"response":{"patch":"%"}}"#, "failed to call webhook: illegal base64 data at input byte 0"),
        ] {
            assert_eq!(other.read(body.as_bytes()).unwrap_err(), expected, "{body}");
        }
        let duplicate_fields = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"x","uid":"u","allowed":true,"status":null}}"#;
        assert!(
            other.read(duplicate_fields.as_bytes()).unwrap().allowed,
            "of a field that stands there twice the last one counts"
        );
        assert!(other.read(b"<html>").unwrap_err().contains("json parse error"));
    }

    #[test]
    fn a_denial_names_its_webhook_and_is_always_a_failure() {
        let denial = |json: &str| denial_status("w.x.y", serde_json::from_str(json).unwrap());
        let table = [
            ("null", 400, "", " without explanation"),
            (r#"{"code":200,"message":"no"}"#, 400, "", ": no"),
            (r#"{"code":418,"reason":"Teapot"}"#, 418, "Teapot", ": Teapot"),
            (r#"{"code":70000,"message":"m","reason":"R"}"#, 400, "R", ": m"),
            (r#"{"code":-1}"#, 400, "", " without explanation"),
        ];
        for (json, code, reason, end) in table {
            let status = denial(json);
            assert_eq!((status.code, status.reason.as_str()), (code, reason), "{json}");
            assert_eq!(status.message, format!("admission webhook \"w.x.y\" denied the request{end}"));
        }
        let status = denial(r#"{"details":{"causes":[{"message":"because"}]}}"#);
        assert_eq!(status.details.unwrap().causes.len(), 1);
    }
}
