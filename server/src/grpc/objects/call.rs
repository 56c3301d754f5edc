//! Conversion of calls and answers between generated messages and the registry.

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use portico_machinery::accept::Encoding;
use portico_machinery::{RequestInfo, Status, UserInfo};
use portico_proto::MAX_MESSAGE_BYTES;
use portico_proto::objects as pb;
use portico_proto::rpc_status::to_rpc;
use portico_registry::{Answer, AuditDetail, Body, Call, Target};

use crate::grpc::RpcResult;

/// Maximum bytes of a message in addition to the body of the answer.
const ENVELOPE_BYTES: usize = 64 * 1024;

/// Converts a call. Native callers must name a verb; facades also send HTTP methods.
pub(super) fn from_proto(call: pb::Call, user: UserInfo, forwarded: bool) -> RpcResult<Call> {
    let target = call.target.ok_or_else(|| tonic::Status::invalid_argument("call.target is required"))?;
    if !forwarded && call.verb.is_empty() {
        return Err(tonic::Status::invalid_argument("call.verb is required"));
    }
    // Only the deprecated paths watch one object: `watch=true` on the path of an object is a read.
    let watch_prefix = call.verb == "watch" && !target.name.is_empty();
    Ok(Call {
        user,
        target: Target {
            group: target.group,
            version: target.version,
            resource: target.resource,
            subresource: target.subresource,
            namespace: target.namespace,
            name: target.name,
            subpath: target.rest,
        },
        verb: if call.method.is_empty() { call.verb } else { call.method },
        query: call.query,
        watch_prefix,
        body: call.body,
        content_type: call.content_type,
        accept: call.accept,
        user_agent: call.user_agent,
        audit_detail: match pb::AuditLevel::try_from(call.audit_level).unwrap_or_default() {
            pb::AuditLevel::Unspecified => AuditDetail::Nothing,
            pb::AuditLevel::Metadata => AuditDetail::Reference,
            pb::AuditLevel::Request => AuditDetail::Request,
            pb::AuditLevel::RequestResponse => AuditDetail::RequestResponse,
        },
        own_account: false,
    })
}

/// Returns the description of the equivalent HTTP request.
pub(super) fn request_info(call: &Call) -> RequestInfo {
    call.target.request_info(&call.verb, &call.query)
}

/// Properties of a call that its answer depends on.
#[derive(Clone, Copy)]
pub(super) struct CallProperties {
    /// Contents for the caller's audit log.
    pub(super) recorded: AuditDetail,
    /// True unless a facade forwards the call.
    pub(super) native: bool,
    /// True if the call changes the store.
    pub(super) writes: bool,
    /// True if the call changes what facades decide by.
    pub(super) configures: bool,
}

impl CallProperties {
    pub(super) fn new(call: &Call, native: bool) -> Self {
        let verb = call.verb.as_str();
        let writes = matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection");
        let configures = writes && portico_controllers::rbac::is_policy(&call.target.group_resource());
        Self { recorded: call.audit_detail, native, writes, configures }
    }
}

/// Returns the media type to send. Bodies are JSON or protobuf; only a facade, which converts them, receives YAML.
pub(super) fn media_type(answer: &Answer, native: bool) -> String {
    match answer.encoding {
        Encoding::Yaml if native => Encoding::Json.media_type().to_owned(),
        _ => answer.media_type().to_owned(),
    }
}

/// Returns the maximum size of a body in one message; facades accept larger ones.
fn max_body(native: bool) -> usize {
    if native { MAX_MESSAGE_BYTES - ENVELOPE_BYTES } else { usize::MAX }
}

/// Returns the answer to a call without its body. Its audit record has at most `room` bytes.
pub(super) fn head(answer: &mut Answer, served: &CallProperties, room: usize) -> pb::DoResponse {
    pb::DoResponse {
        audit: record(answer, served.recorded, room),
        known_resource: is_of_known_resource(answer),
        code: u32::from(answer.code),
        media_type: media_type(answer, served.native),
        revision: answer.revision,
        pretty: answer.pretty,
        retry_after_seconds: answer.status.as_ref().map_or(0, |s| s.retry_after_seconds()),
        audit_annotations: std::mem::take(&mut answer.audit).into_iter().collect(),
        webhook_microseconds: u64::try_from(answer.webhook_duration.as_micros()).unwrap_or(u64::MAX),
        warnings: std::mem::take(&mut answer.warnings),
        configures: served.configures,
        body: Bytes::new(),
        body_omitted: false,
        unrouted: answer.is_unrouted,
    }
}

/// Returns the whole answer in one message. If the body of a completed write does not fit, it is omitted.
///
/// # Errors
/// The answer to a read does not fit; `List` streams lists.
pub(super) async fn response(mut answer: Answer, served: &CallProperties) -> RpcResult<pb::DoResponse> {
    let room = match &answer.body {
        Body::Bytes(bytes) => (MAX_MESSAGE_BYTES - ENVELOPE_BYTES).saturating_sub(bytes.len()),
        Body::List(_) | Body::Watch(_) => 0,
    };
    let head = head(&mut answer, served, room);
    match collect_body(answer.body, max_body(served.native)).await? {
        Some(body) => Ok(pb::DoResponse { body, ..head }),
        None if served.writes => Ok(pb::DoResponse { body_omitted: true, ..head }),
        None => {
            let message = "the response exceeds the size of a message: use List or set a limit";
            Err(to_rpc(&Status::bad_request(message)))
        }
    }
}

/// True if the answer is about a served resource, even if the object does not exist.
fn is_of_known_resource(answer: &Answer) -> bool {
    match &answer.status {
        _ if answer.is_unrouted => false,
        // For a resource the details contain its kind; for an unknown path they do not.
        Some(status) if status.code == 404 => {
            status.details.as_ref().is_some_and(|details| !details.kind.is_empty())
        }
        Some(status) => status.code != 405,
        None => true,
    }
}

/// Returns the audit record of an answer, as far as it fits.
fn record(answer: &mut Answer, recorded: AuditDetail, mut room: usize) -> Option<pb::AuditRecord> {
    if recorded == AuditDetail::Nothing {
        return None;
    }
    let mut record = std::mem::take(&mut answer.record);
    // The local audit policy may require more than the caller's.
    if recorded < AuditDetail::Request {
        record.request = Bytes::new();
    }
    if recorded < AuditDetail::RequestResponse {
        record.response = Bytes::new();
    }
    let status = answer.status.as_ref().filter(|_| !answer.is_unrouted);
    let mut truncated = false;
    let mut fitting = |object: Bytes| match room.checked_sub(object.len()) {
        Some(remaining) => {
            room = remaining;
            object
        }
        None => {
            truncated = true;
            Bytes::new()
        }
    };
    let status = fitting(status.map(|status| status.to_json().into()).unwrap_or_default());
    let (request_object, response_object) = (fitting(record.request), fitting(record.response));
    Some(pb::AuditRecord {
        namespace: record.namespace,
        name: record.name,
        uid: record.uid,
        resource_version: record.resource_version,
        request_object,
        status,
        response_object,
        truncated,
    })
}

/// Collects the body; `None` if it has more than `limit` bytes.
async fn collect_body(body: Body, limit: usize) -> RpcResult<Option<Bytes>> {
    let mut parts = match body {
        Body::Bytes(bytes) => return Ok(Some(bytes).filter(|bytes| bytes.len() <= limit)),
        Body::Watch(_) => return Err(tonic::Status::invalid_argument("use Watch for a watch")),
        Body::List(parts) => parts,
    };
    let mut all = BytesMut::new();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|status| to_rpc(&status))?;
        if part.len() > limit.saturating_sub(all.len()) {
            return Ok(None);
        }
        all.extend_from_slice(&part);
    }
    Ok(Some(all.freeze()))
}
