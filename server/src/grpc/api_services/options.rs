//! Conversion of messages to options of the typed verbs.

use portico_machinery::selector::{FieldSelector, LabelSelector};
use portico_machinery::{GroupResource, Status, UserInfo};
use portico_proto::apiregistration as pb;
use portico_registry::{Call, CreateOptions, ListOptions, Target, VersionMatch};

use crate::grpc::{RpcResult, to_grpc_status};

/// Returns the options of create, update and patch.
pub(super) fn write(dry_run: bool) -> CreateOptions {
    CreateOptions { dry_run, ..CreateOptions::default() }
}

/// Returns the options of list.
///
/// # Errors
/// INVALID_ARGUMENT with the name of the field.
pub(super) fn list(request: &pb::ListRequest) -> RpcResult<ListOptions> {
    let bad_request = |message: String| to_grpc_status(Status::bad_request(message));
    let resource_version = match request.resource_version.as_str() {
        "" => None,
        text => Some(text.parse().map_err(|_| bad_request(format!("invalid resource version: {text:?}")))?),
    };
    let version_match = match request.resource_version_match.as_str() {
        "" => None,
        "Exact" => Some(VersionMatch::Exact),
        "NotOlderThan" => Some(VersionMatch::NotOlderThan),
        other => return Err(bad_request(format!("resource_version_match: unsupported value {other:?}"))),
    };
    Ok(ListOptions {
        labels: LabelSelector::parse(&request.label_selector).map_err(|e| bad_request(e.to_string()))?,
        fields: FieldSelector::parse(&request.field_selector).map_err(|e| bad_request(e.to_string()))?,
        limit: usize::try_from(request.limit)
            .map_err(|_| bad_request("limit must not be negative".to_owned()))?,
        continue_token: request.r#continue.clone(),
        resource_version,
        version_match,
        ..ListOptions::default()
    })
}

/// Returns the registry's call for a watch, equal to that of an HTTP watch.
pub(super) fn watch_call(resource: &GroupResource, user: UserInfo, request: &pb::WatchRequest) -> Call {
    let mut query = form_urlencoded::Serializer::new(String::from("watch=true"));
    for (key, value) in [
        ("labelSelector", request.label_selector.as_str()),
        ("fieldSelector", &request.field_selector),
        ("resourceVersion", &request.resource_version),
        ("allowWatchBookmarks", if request.allow_bookmarks { "true" } else { "" }),
    ] {
        if !value.is_empty() {
            query.append_pair(key, value);
        }
    }
    call(resource, user, "watch", String::new(), query.finish())
}

/// Returns the registry's call for a read that is not older than a revision.
pub(super) fn get_call(resource: &GroupResource, user: UserInfo, request: &pb::GetRequest) -> Call {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("resourceVersion", &request.resource_version);
    call(resource, user, "get", request.name.clone(), query.finish())
}

fn call(resource: &GroupResource, user: UserInfo, verb: &str, name: String, query: String) -> Call {
    Call {
        user,
        target: Target {
            group: resource.group.clone(),
            version: "v1".to_owned(),
            resource: resource.resource.clone(),
            name,
            ..Target::default()
        },
        verb: verb.to_owned(),
        query,
        ..Call::default()
    }
}
