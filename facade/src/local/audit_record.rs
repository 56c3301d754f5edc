//! Transfers audit data in responses of the control service to the audit event of the request.

use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::once;
use futures::{Stream, StreamExt};
use http::header::ACCEPT;
use http::request::Parts;
use portico_audit::{Level, ObjectReference};
use portico_machinery::Status;
use portico_machinery::accept::{Encoding, Offer, negotiate};
use portico_proto::objects::{AuditLevel, AuditRecord};

use crate::body::BoxError;
use crate::request::RequestView;
use portico_auditor::{AuditedRequest, ListCollector};

/// Audit level that the control service must record.
pub(super) fn level(request: &Parts) -> AuditLevel {
    match request.record().audited().map(|audited| audited.level()) {
        None | Some(Level::None) => AuditLevel::Unspecified,
        Some(Level::Metadata) => AuditLevel::Metadata,
        Some(Level::Request) => AuditLevel::Request,
        Some(Level::RequestResponse) => AuditLevel::RequestResponse,
    }
}

/// Annotation of a deprecated API.
const DEPRECATED: &str = "k8s.io/deprecated";
/// Annotation with the release that removes such an API.
const REMOVED_RELEASE: &str = "k8s.io/removed-release";

/// Records annotations. The deprecation of an API is recorded for metrics as well.
pub(super) fn annotations(request: &Parts, annotations: HashMap<String, String>) {
    let record = request.record();
    if annotations.contains_key(DEPRECATED) {
        // Set once per request.
        let _ = record.deprecated.set(annotations.get(REMOVED_RELEASE).cloned().unwrap_or_default());
    }
    if let Some(audited) = record.audited() {
        audited.annotate(annotations);
    }
}

/// Records a complete response.
pub(super) fn record_response(
    request: &Parts,
    record: Option<AuditRecord>,
    annotations: HashMap<String, String>,
    media_type: &str,
    body: &Bytes,
) {
    self::annotations(request, annotations);
    let record_of = request.record();
    let Some(audited) = record_of.audited() else { return };
    if add_record(request, audited, record) == ObjectLocation::Body && is_json(media_type) && !body.is_empty()
    {
        audited.set_response_object(body.clone());
    }
}

/// Records the head of a list; the returned recorder follows the body.
pub(super) fn record_list(
    request: &Parts,
    record: Option<AuditRecord>,
    annotations: HashMap<String, String>,
    media_type: &str,
) -> ListRecorder {
    self::annotations(request, annotations);
    let request_record = request.record();
    let Some(audited) = request_record.audited() else { return ListRecorder(None) };
    let body = add_record(request, audited, record) == ObjectLocation::Body && is_json(media_type);
    let is_recorded = body && audited.level() == Level::RequestResponse;
    ListRecorder(is_recorded.then(|| ListCollector::new(Arc::clone(audited))))
}

/// Location of the object in a response.
#[derive(PartialEq, Eq)]
enum ObjectLocation {
    /// The response body.
    Body,
    /// The audit record, or there is no object.
    Record,
}

fn add_record(request: &Parts, audited: &AuditedRequest, record: Option<AuditRecord>) -> ObjectLocation {
    let Some(record) = record else { return ObjectLocation::Record };
    audited.complete_reference(&ObjectReference {
        namespace: record.namespace,
        name: record.name,
        uid: record.uid,
        resource_version: record.resource_version,
        ..ObjectReference::default()
    });
    if !record.request_object.is_empty() {
        audited.set_request_object(record.request_object);
    }
    if record.truncated {
        audited.omit_response_object();
    }
    if let Some(status) = Status::from_json(&record.status) {
        // Upstream writes failures of content negotiation without its audit handler.
        if !status.is_failure() || is_negotiable(request) {
            audited.set_status(&status);
            audited.set_response_object(record.status);
        }
        return ObjectLocation::Record;
    }
    if record.response_object.is_empty() {
        return ObjectLocation::Body;
    }
    audited.set_response_object(record.response_object);
    ObjectLocation::Record
}

fn is_negotiable(request: &Parts) -> bool {
    let offer = Offer { encodings: &Encoding::ALL, forms: &[], object_as_protobuf: true };
    negotiate(request.header(ACCEPT), offer).is_some()
}

/// True for JSON, and for YAML, which the facade converts from JSON.
fn is_json(media_type: &str) -> bool {
    media_type.starts_with("application/json") || media_type.starts_with("application/yaml")
}

/// Records the body of a list, if the policy requires it.
pub(super) struct ListRecorder(Option<ListCollector>);

impl ListRecorder {
    /// Passes on the parts. After the last part, `first` and all parts together are recorded as the response.
    pub(super) fn follow<S>(
        self,
        first: Bytes,
        later_parts: S,
    ) -> impl Stream<Item = Result<Bytes, BoxError>> + Send + use<S>
    where
        S: Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
    {
        let Some(mut gathered) = self.0 else { return later_parts.left_stream() };
        gathered.push(&first);
        let parts_and_end = later_parts.map(Some).chain(once(ready(None)));
        let followed = parts_and_end.filter_map(move |part| {
            match &part {
                Some(Ok(part)) => gathered.push(part),
                Some(Err(_)) => gathered.discard(),
                None => gathered.finish(),
            }
            ready(part)
        });
        followed.right_stream()
    }
}
