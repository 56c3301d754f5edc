//! Audit data of answers to native callers.

use std::sync::Arc;

use bytes::Bytes;
use portico_audit::{Level, ObjectReference};
use portico_auditor::{AuditedRequest, ListCollector};
use portico_machinery::accept::Encoding;
use portico_machinery::{RequestInfo, Status};
use portico_proto::rpc_status::to_rpc;
use portico_registry::{Answer, AuditDetail, AuditRecord, Body};

use super::RpcResult;
use crate::chain::Caller;

/// Begins the audit event of a call.
///
/// # Errors
/// INTERNAL if the event could not be stored and the policy requires it.
pub(super) async fn begin(caller: &Caller, info: &RequestInfo) -> RpcResult<()> {
    caller.begin_audit(info).await.map_err(|status| to_rpc(&status))
}

/// Returns the detail of audit data that the registry must return for a call.
pub(super) fn detail(caller: &Caller) -> AuditDetail {
    caller.audited_request().map_or(AuditDetail::Nothing, |audited_request| detail_for(audited_request))
}

/// Returns the detail of audit data for the level of an event.
pub(crate) fn detail_for(audited_request: &AuditedRequest) -> AuditDetail {
    match audited_request.level() {
        Level::None => AuditDetail::Nothing,
        Level::Metadata => AuditDetail::Reference,
        Level::Request => AuditDetail::Request,
        Level::RequestResponse => AuditDetail::RequestResponse,
    }
}

/// Records an answer in the event of the caller.
pub(super) fn record_answer(caller: &Caller, answer: &Answer) {
    if let Some(audited_request) = caller.audited_request() {
        record_answer_in(audited_request, answer);
    }
}

/// Records an answer in an event.
pub(crate) fn record_answer_in(audited_request: &AuditedRequest, answer: &Answer) {
    audited_request.annotate(answer.audit.iter().cloned());
    let AuditRecord { namespace, name, uid, resource_version, request, response } = answer.record.clone();
    audited_request.complete_reference(&ObjectReference {
        namespace,
        name,
        uid,
        resource_version,
        ..ObjectReference::default()
    });
    if !request.is_empty() {
        audited_request.set_request_object(request);
    }
    match (&answer.status, &answer.body) {
        (Some(status), _) => record_refusal(audited_request, status),
        _ if !response.is_empty() => audited_request.set_response_object(response),
        (None, Body::Bytes(json)) if is_json(answer) && !json.is_empty() => {
            audited_request.set_response_object(json.clone());
        }
        _ => {}
    }
    audited_request.set_code(answer.code);
}

/// Records the dial target of a connection, which the client dials.
pub(super) fn record_connect(caller: &Caller, annotations: &[(String, String)]) {
    if let Some(audited_request) = caller.audited_request() {
        audited_request.annotate(annotations.iter().cloned());
    }
}

fn record_refusal(audited_request: &AuditedRequest, status: &Status) {
    audited_request.set_status(status);
    audited_request.set_response_object(status.to_json().into());
}

/// Returns the collector for the parts of a list, if responses are recorded.
pub(super) fn list_collector(caller: &Caller, answer: &Answer) -> Option<ListCollector> {
    let is_wanted = matches!(answer.body, Body::List(_)) && is_json(answer) && answer.status.is_none();
    (is_wanted && answer.record.response.is_empty()).then(|| response_collector(caller)).flatten()
}

/// Returns the collector of a list in a response; `None` if responses are not recorded.
pub(super) fn response_collector(caller: &Caller) -> Option<ListCollector> {
    let audited_request = caller
        .audited_request()
        .filter(|audited_request| audited_request.level() == Level::RequestResponse)?;
    Some(ListCollector::new(Arc::clone(audited_request)))
}

/// True if the answer is JSON; facades convert JSON to YAML.
fn is_json(answer: &Answer) -> bool {
    matches!(answer.encoding, Encoding::Yaml) || answer.media_type().starts_with("application/json")
}

/// Records the request object of a typed verb; `json` is called only if it is recorded.
pub(super) fn record_request(caller: &Caller, name: &str, json: impl FnOnce() -> Vec<u8>) {
    let Some(audited_request) = caller.audited_request() else { return };
    audited_request
        .complete_reference(&ObjectReference { name: name.to_owned(), ..ObjectReference::default() });
    if audited_request.level() >= Level::Request {
        audited_request.set_request_object(json().into());
    }
}

/// Records the result of a typed verb: an object, or a refusal.
pub(super) fn record_result(
    caller: &Caller,
    annotations: Vec<(String, String)>,
    result: Result<(u16, Bytes), &Status>,
) {
    let Some(audited_request) = caller.audited_request() else { return };
    audited_request.annotate(annotations);
    match result {
        Ok((code, json)) => {
            audited_request.set_response_object(json);
            audited_request.set_code(code);
        }
        Err(status) => record_refusal(audited_request, status),
    }
}
