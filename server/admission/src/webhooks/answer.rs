//! AdmissionReviews as they come back (upstream's `VerifyAdmissionResponse`). Pure: bytes in, an answer or what is wrong out.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_machinery::Status;
use portico_machinery::status::{Details, ListMeta};
use serde::Deserialize;

use super::configuration::ReviewVersion;

/// What a webhook answers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) allowed: bool,
    /// A JSON patch; nothing where it changes nothing.
    pub(super) patch: Option<Vec<u8>>,
    /// Why it does not allow the request.
    pub(super) denial: Option<Denial>,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: BTreeMap<String, String>,
}

/// What a webhook is asked, as far as its answer must fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'a> {
    pub(super) version: ReviewVersion,
    pub(super) uid: &'a str,
    /// Whether it may change the object.
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
    patch: Option<String>,
    patch_type: Option<String>,
    audit_annotations: Option<BTreeMap<String, String>>,
    warnings: Option<Vec<String>>,
}

/// The Status in an answer, of which any part may be missing.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Denial {
    metadata: Option<ListMeta>,
    message: Option<String>,
    reason: Option<String>,
    details: Option<Details>,
    code: Option<i64>,
}

impl Expected<'_> {
    /// Reads an answer.
    ///
    /// # Errors
    /// What is wrong with it, in upstream's words.
    pub(super) fn read(self, body: &[u8]) -> Result<Answer, String> {
        let review: Review = serde_json::from_slice(body).map_err(|error| {
            format!("failed to call webhook: couldn't get version/kind; json parse error: {error}")
        })?;
        self.verify(review).map_err(|why| format!("received invalid webhook response: {why}"))
    }

    fn verify(self, review: Review) -> Result<Answer, String> {
        let (api_version, kind) = (review.api_version.unwrap_or_default(), review.kind.unwrap_or_default());
        let response = review.response.ok_or("webhook response was absent")?;
        let patch = response.patch.as_deref().unwrap_or_default();
        let patch = STANDARD.decode(patch).map_err(|error| format!("response.patch: {error}"))?;
        if self.version == ReviewVersion::V1 {
            self.check_identity(response.uid.as_deref().unwrap_or_default(), &api_version, &kind)?;
            self.check_patch(&patch, response.patch_type.as_deref())?;
        }
        Ok(Answer {
            allowed: response.allowed.unwrap_or_default(),
            patch: Some(patch).filter(|patch| self.mutates && !patch.is_empty()),
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
        if api_version != expected || kind != "AdmissionReview" {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            return Err(format!(
                "expected webhook response of {expected}, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
            ));
        }
        Ok(())
    }

    fn check_patch(self, patch: &[u8], patch_type: Option<&str>) -> Result<(), String> {
        let wrong = match (self.mutates, patch.is_empty(), patch_type) {
            (true, false, None) => "webhook returned response.patch but not response.patchType",
            (true, true, Some(_)) => "webhook returned response.patchType but not response.patch",
            (true, false, Some("")) => "webhook returned invalid response.patchType of \"\"",
            (true, false, Some(other)) if other != "JSONPatch" => {
                return Err(format!("unsupported patch type {other:?}"));
            }
            (false, false, _) => "validating webhook may not return response.patch",
            (false, true, Some(_)) => "validating webhook may not return response.patchType",
            _ => return Ok(()),
        };
        Err(wrong.to_owned())
    }
}

/// A denial as the caller gets it: the webhook's Status, marked as its (upstream's `ToStatusErr`).
pub(super) fn denied(webhook: &str, denial: Option<Denial>) -> Box<Status> {
    let Denial { metadata, message, reason, details, code } = denial.unwrap_or_default();
    let by = format!("admission webhook {webhook:?} denied the request");
    let why = [message, reason.clone()].into_iter().flatten().find(|text| !text.is_empty());
    let message = match why {
        Some(why) => format!("{by}: {why}"),
        None => format!("{by} without explanation"),
    };
    let mut status = Status::bad_request(message);
    status.metadata = metadata.unwrap_or_default();
    status.reason = reason.unwrap_or_default();
    status.details = details;
    // What is no failure is one here.
    status.code = code
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| (400..1000).contains(code))
        .unwrap_or(400);
    Box::new(status)
}

/// Reads any bytes as answers of each kind; nothing of it may panic.
#[doc(hidden)]
pub fn read_any(body: &[u8]) {
    for version in [ReviewVersion::V1, ReviewVersion::V1Beta1] {
        for mutates in [true, false] {
            if let Ok(answer) = (Expected { version, uid: "u", mutates }).read(body) {
                drop(denied("w", answer.denial));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(version: ReviewVersion, mutates: bool, response: &str) -> Result<Answer, String> {
        let api_version = version.api_version();
        let body =
            format!(r#"{{"kind":"AdmissionReview","apiVersion":"{api_version}","response":{response}}}"#);
        Expected { version, uid: "u", mutates }.read(body.as_bytes())
    }

    #[test]
    fn an_answer_must_fit_its_question() {
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
            (true, r#"{"uid":"u","patch":"W10=","patchType":"Merge"}"#, r#"unsupported patch type "Merge""#),
            (false, r#"{"uid":"u","patch":"W10="}"#, "validating webhook may not return response.patch"),
            (false, r#"{"uid":"u","patchType":""}"#, "validating webhook may not return response.patchType"),
        ];
        for (mutates, response, why) in table {
            let expected = format!("received invalid webhook response: {why}");
            assert_eq!(read(ReviewVersion::V1, mutates, response).unwrap_err(), expected, "{response}");
        }
        assert!(read(ReviewVersion::V1Beta1, true, r#"{"patch":"W10="}"#).unwrap().patch.is_some());
        assert!(read(ReviewVersion::V1Beta1, false, r#"{"patch":"W10="}"#).unwrap().patch.is_none());
        let other = Expected { version: ReviewVersion::V1, uid: "u", mutates: false };
        let wrong = other.read(br#"{"kind":"Pod","apiVersion":"v1","response":{"uid":"u"}}"#).unwrap_err();
        assert!(wrong.ends_with("got /v1, Kind=Pod"), "{wrong}");
        assert!(other.read(b"<html>").unwrap_err().contains("json parse error"));
    }

    #[test]
    fn a_denial_says_whose_it_is_and_is_always_a_failure() {
        let denial = |json: &str| denied("w.x.y", serde_json::from_str(json).unwrap());
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
        let kept = denial(r#"{"details":{"causes":[{"message":"because"}]}}"#);
        assert_eq!(kept.details.unwrap().causes.len(), 1);
    }
}
