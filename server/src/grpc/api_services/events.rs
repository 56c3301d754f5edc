//! Audit data of typed calls: their messages as the JSON of the equivalent HTTP request.

use portico_machinery::Status;
use portico_proto::apiregistration as pb;
use portico_registry::{Context, ListResult, StoredObject};
use serde::Serialize;

use crate::chain::Caller;
use crate::grpc::audit_records;

const LIST_HEAD: &str = r#"{"kind":"APIServiceList","apiVersion":"apiregistration.k8s.io/v1","metadata":"#;

/// Records the result of a verb: a code and an object, or a refusal.
pub(super) fn record_result(
    caller: &Caller,
    context: &Context,
    result: Result<(u16, &StoredObject), &Status>,
) {
    audit_records::record_result(
        caller,
        context.annotations.take(),
        result.map(|(code, stored)| (code, stored.json())),
    );
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta<'a> {
    resource_version: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    r#continue: &'a str,
}

/// Records a list, if responses are recorded.
pub(super) fn record_list(caller: &Caller, list: &ListResult) {
    let Some(mut collector) = audit_records::response_collector(caller) else { return };
    let metadata = ListMeta { resource_version: list.revision.to_string(), r#continue: &list.continue_token };
    collector.push(LIST_HEAD.as_bytes());
    collector.push(&serde_json::to_vec(&metadata).unwrap_or_else(|_| b"{}".to_vec()));
    collector.push(br#","items":["#);
    for (index, stored) in list.items.iter().enumerate() {
        if index > 0 {
            collector.push(b",");
        }
        collector.push(&stored.json());
    }
    collector.push(b"]}");
    collector.finish();
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeleteOptions<'a> {
    kind: &'static str,
    api_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    preconditions: Option<Preconditions<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_run: Option<[&'static str; 1]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    resource_version: &'a str,
}

/// Returns the options that a delete has in its body over HTTP.
pub(super) fn delete_options(request: &pb::DeleteRequest) -> Vec<u8> {
    let preconditions = Preconditions { uid: &request.uid, resource_version: &request.resource_version };
    let has_preconditions = !request.uid.is_empty() || !request.resource_version.is_empty();
    let options = DeleteOptions {
        kind: "DeleteOptions",
        api_version: "meta.k8s.io/v1",
        preconditions: has_preconditions.then_some(preconditions),
        dry_run: request.dry_run.then_some(["All"]),
    };
    serde_json::to_vec(&options).unwrap_or_else(|_| b"{}".to_vec())
}
