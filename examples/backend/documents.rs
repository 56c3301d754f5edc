//! Documents for aggregators and kubectl: the APIService, discovery, OpenAPI and Tables.

use std::net::SocketAddr;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::flunder::{API_VERSION, Flunder, GROUP, KIND, RESOURCE, VERSION};

const VERBS: [&str; 8] = ["create", "delete", "get", "list", "patch", "update", "watch", "deletecollection"];
const SCHEMA: &str = "com.example.wardle.v1alpha1.Flunder";

/// Returns the APIService that registers this server. The annotation names the address, so the Service need not exist;
/// the certificate must still be valid for `<service>.<namespace>.svc`.
pub fn api_service(service: &str, namespace: &str, address: SocketAddr, ca_pem: &str) -> String {
    let ca = STANDARD.encode(ca_pem);
    format!(
        "apiVersion: apiregistration.k8s.io/v1\n\
         kind: APIService\n\
         metadata:\n  \
           name: {VERSION}.{GROUP}\n  \
           annotations:\n    \
             portico.dev/backend-urls: https://{address}\n\
         spec:\n  \
           group: {GROUP}\n  \
           version: {VERSION}\n  \
           groupPriorityMinimum: 1000\n  \
           versionPriority: 15\n  \
           service: {{namespace: {namespace}, name: {service}, port: 443}}\n  \
           caBundle: {ca}\n"
    )
}

/// `/apis` in the aggregated form, with groups, versions and resources.
pub fn aggregated_discovery() -> Vec<u8> {
    let kind = json!({"group": GROUP, "version": VERSION, "kind": KIND});
    let resource = json!({"resource": RESOURCE, "responseKind": kind, "scope": "Namespaced",
        "singularResource": "flunder", "verbs": VERBS, "shortNames": ["fl"]});
    let version = json!({"version": VERSION, "resources": [resource], "freshness": "Current"});
    bytes(&json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": [{"metadata": {"name": GROUP, "creationTimestamp": null}, "versions": [version]}]}))
}

/// `/apis`
pub fn groups() -> Vec<u8> {
    let version = json!({"groupVersion": API_VERSION, "version": VERSION});
    let group = json!({"name": GROUP, "versions": [version.clone()], "preferredVersion": version});
    bytes(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}))
}

/// `/apis/<group>`
pub fn group() -> Vec<u8> {
    let version = json!({"groupVersion": API_VERSION, "version": VERSION});
    bytes(&json!({"kind": "APIGroup", "apiVersion": "v1", "name": GROUP, "versions": [version.clone()],
        "preferredVersion": version}))
}

/// `/apis/<group>/<version>`
pub fn resources() -> Vec<u8> {
    bytes(&json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": API_VERSION, "resources": [
        {"name": RESOURCE, "singularName": "flunder", "namespaced": true, "kind": KIND, "verbs": VERBS,
         "shortNames": ["fl"]}]}))
}

/// `/openapi/v3`
pub fn openapi_v3_index() -> Vec<u8> {
    let url = format!("/openapi/v3/apis/{API_VERSION}?hash=1");
    bytes(&json!({"paths": {format!("apis/{API_VERSION}"): {"serverRelativeURL": url}}}))
}

/// Schema of a Flunder, equal in OpenAPI v2 and v3.
macro_rules! schema {
    () => {
        json!({SCHEMA: {"type": "object", "description": "An object that refers to another object.",
            "x-kubernetes-group-version-kind": [{"group": GROUP, "version": VERSION, "kind": KIND}],
            "properties": {
                "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
                "spec": {"type": "object", "description": "Desired state.",
                    "properties": {"reference": {"type": "string", "description": "Name of the other object."}}},
                "status": {"type": "object", "description": "Users who created and last changed the object.",
                    "properties": {"createdBy": {"type": "string"}, "changedBy": {"type": "string"}}}}}})
    };
}

/// OpenAPI paths with the operations that kubectl looks for.
macro_rules! paths {
    ($answer:expr) => {{
        let kind = json!({"group": GROUP, "version": VERSION, "kind": KIND});
        let operation = |id: &str, action: &str| json!({"operationId": format!("{id}Flunder"), "responses": $answer,
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind});
        let base = format!("/apis/{API_VERSION}/namespaces/{{namespace}}/{RESOURCE}");
        json!({
            base.clone(): {"get": operation("list", "list"), "post": operation("create", "post")},
            format!("{base}/{{name}}"): {"get": operation("read", "get"), "put": operation("replace", "put"),
                "patch": operation("patch", "patch"), "delete": operation("delete", "delete")}})
    }};
}

/// `/openapi/v3/apis/<group>/<version>`
pub fn openapi_v3() -> Vec<u8> {
    let reference = json!({"$ref": format!("#/components/schemas/{SCHEMA}")});
    let answer =
        json!({"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}});
    bytes(
        &json!({"openapi": "3.0.0", "info": {"title": "flunders", "version": VERSION}, "paths": paths!(answer),
        "components": {"schemas": schema!()}}),
    )
}

/// `/openapi/v2`
pub fn openapi_v2() -> Vec<u8> {
    let answer = json!({"200": {"description": "OK", "schema": {"$ref": format!("#/definitions/{SCHEMA}")}}});
    bytes(
        &json!({"swagger": "2.0", "info": {"title": "flunders", "version": VERSION}, "paths": paths!(answer),
        "definitions": schema!()}),
    )
}

/// Returns a Table for kubectl. `objects` is the parameter `includeObject`: `None`, `Object` or `Metadata` (default).
pub fn table(flunders: &[Flunder], revision: &str, objects: &str, with_columns: bool) -> Vec<u8> {
    let column = |name: &str, format: &str, description: &str, priority: i32| json!({"name": name, "type": "string", "format": format, "description": description, "priority": priority});
    let columns = with_columns.then(|| {
        [
            column("Name", "name", "Name of the flunder", 0),
            column("Reference", "", "Name of the other object", 0),
            column("Created By", "", "User who created it", 0),
            column("Changed By", "", "User who changed it last", 1),
            column("Age", "", "Time since its creation", 0),
        ]
    });
    let rows: Vec<_> = flunders.iter().map(|f| {
        let object = match objects {
            "None" => json!(null),
            "Object" => json!(f),
            _ => json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": f.metadata}),
        };
        let cells = [&f.metadata.name, &f.spec.reference, &f.status.created_by, &f.status.changed_by, &age(f)];
        json!({"cells": cells, "object": object})
    }).collect();
    bytes(&json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": revision},
        "columnDefinitions": columns, "rows": rows}))
}

fn age(flunder: &Flunder) -> String {
    let created =
        flunder.metadata.creation_timestamp.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let since = created.and_then(|created| SystemTime::now().duration_since(created.into()).ok());
    match since.map(|since| since.as_secs()) {
        None => "<unknown>".to_owned(),
        Some(seconds @ 0..120) => format!("{seconds}s"),
        Some(seconds @ 120..7200) => format!("{}m", seconds / 60),
        Some(seconds @ 7200..172_800) => format!("{}h", seconds / 3600),
        Some(seconds) => format!("{}d", seconds / 86_400),
    }
}

/// Encodes JSON. This cannot fail for strings, numbers and lists.
fn bytes(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
