//! Audit data of answers to native callers.

use std::sync::Arc;

use bytes::Bytes;
use portico_audit::{Level, ObjectReference};
use portico_auditor::{Audited, GatheredList};
use portico_machinery::accept::Encoding;
use portico_machinery::{RequestInfo, Status};
use portico_proto::rpc_status::to_rpc;
use portico_registry::{Answer, Body, Record, Recorded};

use super::RpcResult;
use crate::chain::Caller;

/// Begins the audit event of a call.
///
/// # Errors
/// INTERNAL if the event could not be stored and the policy requires it.
pub(super) async fn begin(caller: &Caller, info: &RequestInfo) -> RpcResult<()> {
    caller.begin(info).await.map_err(|status| to_rpc(&status))
}

/// Returns the detail of audit data that the registry must return for a call.
pub(super) fn wanted(caller: &Caller) -> Recorded {
    caller.audited().map_or(Recorded::Nothing, |audited| wanted_by(audited))
}

/// Returns the detail of audit data for the level of an event.
pub(crate) fn wanted_by(audited: &Audited) -> Recorded {
    match audited.level() {
        Level::None => Recorded::Nothing,
        Level::Metadata => Recorded::Reference,
        Level::Request => Recorded::Sent,
        Level::RequestResponse => Recorded::Everything,
    }
}

/// Records an answer in the event of the caller.
pub(super) fn note(caller: &Caller, answer: &Answer) {
    if let Some(audited) = caller.audited() {
        note_answer(audited, answer);
    }
}

/// Records an answer in an event.
pub(crate) fn note_answer(audited: &Audited, answer: &Answer) {
    audited.annotate(answer.audit.iter().cloned());
    let Record { namespace, name, uid, resource_version, request, response } = answer.record.clone();
    audited.complete_reference(&ObjectReference {
        namespace,
        name,
        uid,
        resource_version,
        ..ObjectReference::default()
    });
    if !request.is_empty() {
        audited.set_request_object(request);
    }
    match (&answer.status, &answer.body) {
        (Some(status), _) => refused(audited, status),
        _ if !response.is_empty() => audited.set_response_object(response),
        (None, Body::Bytes(json)) if is_json(answer) && !json.is_empty() => {
            audited.set_response_object(json.clone());
        }
        _ => {}
    }
    audited.set_code(answer.code);
}

/// Records the dial target of a connection, which the client dials.
pub(super) fn connects(caller: &Caller, notes: &[(String, String)]) {
    if let Some(audited) = caller.audited() {
        audited.annotate(notes.iter().cloned());
    }
}

fn refused(audited: &Audited, status: &Status) {
    audited.set_status(status);
    audited.set_response_object(status.to_json().into());
}

/// Returns the collector for the parts of a list, if responses are recorded.
pub(super) fn gathered(caller: &Caller, answer: &Answer) -> Option<GatheredList> {
    let is_wanted = matches!(answer.body, Body::List(_)) && is_json(answer) && answer.status.is_none();
    (is_wanted && answer.record.response.is_empty()).then(|| response(caller)).flatten()
}

/// Returns the collector of a list in a response; `None` if responses are not recorded.
pub(super) fn response(caller: &Caller) -> Option<GatheredList> {
    let audited = caller.audited().filter(|audited| audited.level() == Level::RequestResponse)?;
    Some(GatheredList::new(Arc::clone(audited)))
}

/// True if the answer is JSON; facades convert JSON to YAML.
fn is_json(answer: &Answer) -> bool {
    matches!(answer.encoding, Encoding::Yaml) || answer.media_type().starts_with("application/json")
}

/// Records the request object of a typed verb; `json` is called only if it is recorded.
pub(super) fn sent(caller: &Caller, name: &str, json: impl FnOnce() -> Vec<u8>) {
    let Some(audited) = caller.audited() else { return };
    audited.complete_reference(&ObjectReference { name: name.to_owned(), ..ObjectReference::default() });
    if audited.level() >= Level::Request {
        audited.set_request_object(json().into());
    }
}

/// Records the result of a typed verb: an object, or a refusal.
pub(super) fn ended(
    caller: &Caller,
    annotations: Vec<(String, String)>,
    ended: Result<(u16, Bytes), &Status>,
) {
    let Some(audited) = caller.audited() else { return };
    audited.annotate(annotations);
    match ended {
        Ok((code, json)) => {
            audited.set_response_object(json);
            audited.set_code(code);
        }
        Err(status) => refused(audited, status),
    }
}
