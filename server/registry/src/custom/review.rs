//! ConversionReviews: encoding of requests and validation of responses. Pure functions from bytes to objects.

use std::ops::Range;

use portico_machinery::object::{MAX_DEPTH, is_deeper};
use portico_machinery::{Cursor, Object, aggregate};
use serde::Deserialize;
use serde_json::value::RawValue;

use portico_validation as validation;

/// Supported version of ConversionReview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVersion {
    /// `v1`.
    V1,
    /// `v1beta1`, with less strict validation of responses.
    V1Beta1,
}

/// Request of a review, for validating its response.
#[derive(Clone, Copy, Debug)]
pub struct Review<'a> {
    /// Version of the review.
    pub version: ReviewVersion,
    /// UID of the request.
    pub uid: &'a str,
    /// Desired `apiVersion` of the objects.
    pub desired_api_version: &'a str,
    /// Objects in the request.
    pub objects: &'a [Object],
    /// True if a single object was requested instead of a list.
    pub single: bool,
}

/// Fault of a response; corresponds to upstream's metric labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no response.
    Call,
    /// The review is invalid, or reports a failure.
    Malformed,
    /// The number of objects is wrong.
    Partial,
    /// An object is invalid.
    Object,
}

/// Failed conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Fault of the response.
    pub fault: Fault,
    /// Text after `conversion webhook for <kind> ` in upstream's messages.
    pub message: String,
}

impl ReviewVersion {
    /// First supported version in this list.
    #[must_use]
    pub fn first_of(names: &[String]) -> Option<Self> {
        names.iter().find_map(|name| match name.as_str() {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        })
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "apiextensions.k8s.io/v1",
            Self::V1Beta1 => "apiextensions.k8s.io/v1beta1",
        }
    }
}

impl Fault {
    /// Value of the metric label `failure_type`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Call => "conversion_webhook_call_failure",
            Self::Malformed => "conversion_webhook_malformed_response_failure",
            Self::Partial => "conversion_webhook_partial_response_failure",
            Self::Object => "conversion_webhook_invalid_converted_object_failure",
        }
    }
}

/// Response body; objects stay bytes until they are validated.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ReviewBody<'a> {
    api_version: Option<String>,
    kind: Option<String>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Response<'a> {
    uid: Option<String>,
    #[serde(borrow)]
    converted_objects: Option<Vec<&'a RawValue>>,
    result: Option<ReviewStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReviewStatus {
    status: Option<String>,
    message: Option<String>,
}

/// Splits objects, given as JSON, into reviews: each contains as many as fit, but at least one.
pub(super) fn batches(objects: &[Vec<u8>], max_bytes: usize) -> Vec<Range<usize>> {
    let mut batches: Vec<Range<usize>> = Vec::new();
    let mut size = 0;
    for (index, object) in objects.iter().enumerate() {
        match batches.last_mut() {
            Some(batch) if size + object.len() <= max_bytes => batch.end = index + 1,
            _ => {
                size = 0;
                batches.push(index..index + 1);
            }
        }
        size += object.len();
    }
    batches
}

/// Encodes the request as JSON; `objects` are those of the review.
#[must_use]
pub fn encode_request(
    version: ReviewVersion,
    uid: &str,
    desired_api_version: &str,
    objects: &[Vec<u8>],
) -> Vec<u8> {
    let api_version = version.api_version();
    let mut json = format!(
        "{{\"kind\":\"ConversionReview\",\"apiVersion\":\"{api_version}\",\"request\":{{\"uid\":\"{uid}\",\"desiredAPIVersion\":\"{desired_api_version}\",\"objects\":["
    )
    .into_bytes();
    json.reserve(objects.iter().map(|object| object.len() + 1).sum::<usize>() + 96);
    for (index, object) in objects.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        json.extend_from_slice(object);
    }
    json.extend_from_slice(
        b"]},\"response\":{\"uid\":\"\",\"convertedObjects\":null,\"result\":{\"metadata\":{}}}}\n",
    );
    json
}

impl Review<'_> {
    /// Validates a response and returns the converted objects, in the order of the request. Their metadata is that of the
    /// originals, except labels and annotations.
    ///
    /// # Errors
    /// First fault found in the response.
    pub fn read(&self, body: &[u8]) -> Result<Vec<Object>, Failure> {
        let review: ReviewBody<'_> = serde_json::from_slice(body).map_err(|error| Failure {
            fault: Fault::Call,
            message: format!("failed: couldn't get version/kind; json parse error: {error}"),
        })?;
        let objects = self
            .objects_of(review)
            .map_err(|message| Failure { fault: Fault::Malformed, message: format!("failed: {message}") })?;
        if objects.len() != self.objects.len() {
            let message = format!("returned {} objects, expected {}", objects.len(), self.objects.len());
            return Err(Failure { fault: Fault::Partial, message });
        }
        let pairs = self.objects.iter().zip(objects).enumerate();
        let converted = pairs.map(|(index, (original, raw))| self.object(index, original, raw));
        converted
            .map(|converted| converted.map_err(|message| Failure { fault: Fault::Object, message }))
            .collect()
    }

    fn objects_of<'a>(&self, review: ReviewBody<'a>) -> Result<Vec<&'a RawValue>, String> {
        let is_strict = self.version == ReviewVersion::V1;
        let (api_version, kind) = (review.api_version.unwrap_or_default(), review.kind.unwrap_or_default());
        if is_strict && (api_version != self.version.api_version() || kind != "ConversionReview") {
            let expected = self.version.api_version();
            let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
            return Err(format!(
                "expected webhook response of {expected}, Kind=ConversionReview, got {group}/{version}, Kind={kind}"
            ));
        }
        let response = review.response.ok_or("no response provided")?;
        let uid = response.uid.unwrap_or_default();
        if is_strict && uid != self.uid {
            return Err(format!("expected response.uid={:?}, got {uid:?}", self.uid));
        }
        let result = response.result.unwrap_or_default();
        let status = result.status.unwrap_or_default();
        if status != "Success" {
            let message = result.message.filter(|message| !message.is_empty());
            return Err(
                message.unwrap_or_else(|| format!("response.result.status was '{status}', not 'Success'"))
            );
        }
        Ok(response.converted_objects.unwrap_or_default())
    }

    fn object(&self, index: usize, original: &Object, raw: &RawValue) -> Result<Object, String> {
        let (object, metadata) = if self.single {
            ("returned invalid object".to_owned(), "returned invalid metadata".to_owned())
        } else {
            (
                format!("returned invalid converted object at index {index}"),
                format!("returned invalid metadata in object at index {index}"),
            )
        };
        let mut converted = parse(raw).map_err(|error| format!("{object}: {error}"))?;
        let index_suffix = if self.single { " at index 0" } else { "" };
        let mismatch = |what, expected, found| {
            format!("{object}{index_suffix}: invalid {what} (expected {expected}, received {found})")
        };
        if converted.api_version() != self.desired_api_version {
            return Err(mismatch("groupVersion", self.desired_api_version, converted.api_version()));
        }
        if converted.kind() != original.kind() {
            return Err(mismatch("kind", original.kind(), converted.kind()));
        }
        same_identity(original, &converted).map_err(|error| format!("{object}: {error}"))?;
        restore_metadata(original, &mut converted).map_err(|error| format!("{metadata}: {error}"))?;
        Ok(converted)
    }
}

fn parse(raw: &RawValue) -> Result<Object, String> {
    if is_deeper(raw.get().as_bytes(), MAX_DEPTH) {
        return Err(format!("exceeded max depth: at most {MAX_DEPTH} levels are accepted"));
    }
    let object = Object::from_json(raw.get().as_bytes()).map_err(|error| error.to_string())?;
    if object.kind().is_empty() {
        return Err(format!("Object 'Kind' is missing in '{}'", raw.get()));
    }
    Ok(object)
}

fn same_identity(original: &Object, converted: &Object) -> Result<(), String> {
    let pairs = [
        ("name", original.name(), converted.name()),
        ("namespace", original.namespace(), converted.namespace()),
        ("UID", original.uid(), converted.uid()),
    ];
    match pairs.into_iter().find(|(_, expected, found)| expected != found) {
        Some((what, expected, found)) => Err(format!("must have the same {what}: {expected} != {found}")),
        None => Ok(()),
    }
}

/// Restores the original's metadata, except labels and annotations.
fn restore_metadata(original: &Object, converted: &mut Object) -> Result<(), String> {
    let metadata = converted.metadata();
    if metadata.value().is_none() {
        return Err("missing metadata in converted object".to_owned());
    }
    if !metadata.is_map() {
        return Err(format!("invalid metadata of type {} in converted object", metadata.go_type()));
    }
    for name in ["labels", "annotations"] {
        check_texts(name, &original.metadata().field(name), &metadata.field(name))?;
    }
    let changed = ["labels", "annotations"].map(|name| {
        let texts = metadata.field(name);
        (name, texts.node().filter(|_| texts.is_present()))
    });
    drop(metadata);
    converted.copy_from(original, &["metadata"]);
    for (name, texts) in changed {
        match texts {
            Some(texts) => converted.put(&["metadata", name], texts),
            None => drop(converted.remove(&["metadata", name])),
        }
    }
    Ok(())
}

/// Validates labels or annotations, unless they are unchanged.
fn check_texts(name: &str, original: &Cursor<'_>, converted: &Cursor<'_>) -> Result<(), String> {
    if !converted.is_present() {
        return Ok(());
    }
    if !converted.is_map() {
        return Err(format!("invalid metadata.{name} of type {} in converted object", converted.go_type()));
    }
    if let Some((key, value)) = converted.entries().find(|(_, value)| value.opt_str().is_none()) {
        let found = value.go_type();
        return Err(format!("metadata.{name}[{key}] must be a string, but is {found} in converted object"));
    }
    if converted.same_as(original) {
        return Ok(());
    }
    let mut errors = Vec::new();
    if name == "labels" {
        validation::validate_labels(converted, &mut errors);
    } else {
        validation::validate_annotations(converted, &mut errors);
    }
    if errors.is_empty() { Ok(()) } else { Err(aggregate(&errors)) }
}

#[cfg(test)]
#[path = "review_tests.rs"]
mod tests;
