//! Lists and watches of typed messages.

use futures::{Stream, StreamExt, stream};
use portico_machinery::{Object, Status};
use portico_proto::apiregistration as pb;
use portico_proto::convert::api_service_from_object;
use portico_registry::{Answer, Body, EventType, Frame, ListResult};

use crate::grpc::{RpcResult, to_grpc_status};
use crate::queues::RunningCall;

/// Maximum bytes of stored JSON in one message of a list, unless its only object is larger.
const PART_BYTES: usize = 1024 * 1024;

/// Splits a list into messages of about a megabyte; an empty list is one message.
pub(super) fn list_messages(listed: ListResult) -> impl Stream<Item = RpcResult<pb::ListResponse>> {
    let resource_version = listed.revision.to_string();
    let mut end = Some((listed.continue_token, listed.remaining));
    let mut items = listed.items.into_iter().peekable();
    let parts = std::iter::from_fn(move || {
        end.as_ref()?;
        let (mut part, mut bytes) = (Vec::new(), 0);
        while let Some(stored) = items.next_if(|next| bytes == 0 || bytes + next.json().len() <= PART_BYTES) {
            bytes += stored.json().len();
            part.push(api_service_from_object(stored.object()));
        }
        let mut response = pb::ListResponse {
            items: part,
            resource_version: resource_version.clone(),
            ..pb::ListResponse::default()
        };
        if items.peek().is_none() {
            let (token, remaining) = end.take()?;
            response.r#continue = token;
            response.remaining_item_count = remaining.and_then(|n| i64::try_from(n).ok());
        }
        Some(Ok(response))
    });
    stream::iter(parts)
}

/// Returns the object of an answer.
///
/// # Errors
/// The refusal in the answer.
pub(super) fn object(answer: Answer) -> RpcResult<pb::ApiService> {
    match answer {
        Answer { status: Some(status), .. } => Err(to_grpc_status(status)),
        Answer { body: Body::Bytes(json), .. } => {
            let object = Object::from_json(&json).map_err(|e| to_grpc_status(Status::internal(e)))?;
            Ok(api_service_from_object(&object))
        }
        Answer { .. } => Err(to_grpc_status(Status::internal("a read returned a stream"))),
    }
}

/// Returns the events of an accepted watch. While the watch exists, it is included in the cost estimates of writes.
///
/// # Errors
/// The refusal, if the watch was not started.
pub(super) fn watch_events(
    answer: Answer,
    running: RunningCall,
) -> RpcResult<impl Stream<Item = RpcResult<pb::WatchResponse>> + use<>> {
    match answer {
        Answer { body: Body::Watch(watch), .. } => Ok(watch.frames.map(move |frame| {
            let _guard = &running;
            event(&frame.frame)
        })),
        Answer { status: Some(status), .. } => Err(to_grpc_status(status)),
        Answer { .. } => Err(to_grpc_status(Status::internal("a watch returned a document"))),
    }
}

fn event(frame: &Frame) -> RpcResult<pb::WatchResponse> {
    let kind = match frame.kind {
        EventType::Added => pb::EventType::Added,
        EventType::Modified => pb::EventType::Modified,
        EventType::Deleted => pb::EventType::Deleted,
        EventType::Bookmark => pb::EventType::Bookmark,
        EventType::Error => pb::EventType::Error,
    };
    if frame.kind == EventType::Error {
        let error = Status::from_json(&frame.object()).map(|s| s.message).unwrap_or_default();
        return Ok(pb::WatchResponse { r#type: kind.into(), object: None, error });
    }
    let object = Object::from_json(&frame.object()).map_err(|e| to_grpc_status(Status::internal(e)))?;
    let object = Some(api_service_from_object(&object));
    Ok(pb::WatchResponse { r#type: kind.into(), object, error: String::new() })
}
