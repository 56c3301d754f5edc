//! Responses of the recordings' backend: discovery, OpenAPI, conversions, echoes.

use std::collections::BTreeMap;

use http::request::Parts;
use serde_json::{Map, Value, json};

/// Group that it serves.
pub const GROUP: &str = "wardle.example.com";

/// Versions of the group, the preferred one first.
pub const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];

/// Media type of aggregated discovery.
pub const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Headers that an echo contains unchanged.
const SHOWN: [&str; 6] =
    ["accept", "content-type", "x-forwarded-proto", "x-forwarded-uri", "connection", "upgrade"];

/// Headers of which an echo only contains the presence.
const PRESENCE_HEADERS: [&str; 5] =
    ["audit-id", "authorization", "traceparent", "x-forwarded-for", "x-forwarded-host"];

/// The APIResourceList of a version.
pub fn resources(version: &str) -> Value {
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{GROUP}/{version}"), "resources": [
        {"name": "flunders", "singularName": "flunder", "namespaced": true, "kind": "Flunder", "verbs": VERBS, "shortNames": ["fl"]},
        {"name": "fischers", "singularName": "fischer", "namespaced": false, "kind": "Fischer", "verbs": VERBS},
    ]})
}

/// The APIGroup.
pub fn group() -> Value {
    let versions =
        VERSIONS.map(|version| json!({"groupVersion": format!("{GROUP}/{version}"), "version": version}));
    json!({"kind": "APIGroup", "apiVersion": "v1", "name": GROUP, "versions": versions, "preferredVersion": versions[0]})
}

/// The APIGroupList.
pub fn group_list() -> Value {
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group()]})
}

/// The APIGroupDiscoveryList.
pub fn aggregated_discovery() -> Value {
    let versions = VERSIONS.map(|version| {
        let kind = |kind: &str| json!({"group": GROUP, "version": version, "kind": kind});
        json!({"version": version, "freshness": "Current", "resources": [
            {"resource": "flunders", "responseKind": kind("Flunder"), "scope": "Namespaced", "singularResource": "flunder",
             "verbs": VERBS, "shortNames": ["fl"]},
            {"resource": "fischers", "responseKind": kind("Fischer"), "scope": "Cluster", "singularResource": "fischer",
             "verbs": VERBS},
        ]})
    });
    let metadata = json!({"name": GROUP, "creationTimestamp": null});
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
           "items": [{"metadata": metadata, "versions": versions}]})
}

fn schema_name(version: &str) -> String {
    format!("com.example.wardle.{version}.Flunder")
}

fn schema(version: &str) -> Value {
    let spec = json!({"type": "object", "properties": {"reference": {"type": "string", "description": "what it refers to"}}});
    json!({
        "type": "object",
        "description": "Flunder is a thing from a backend.",
        "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}, "spec": spec},
        "x-kubernetes-group-version-kind": [{"group": GROUP, "kind": "Flunder", "version": version}],
    })
}

fn path_item(version: &str, ok: &Value) -> (String, Value) {
    let path = format!("/apis/{GROUP}/{version}/namespaces/{{namespace}}/flunders/{{name}}");
    let kind = json!({"group": GROUP, "kind": "Flunder", "version": version});
    let get = json!({"operationId": format!("readFlunder{version}"), "responses": {"200": ok},
        "x-kubernetes-action": "get", "x-kubernetes-group-version-kind": kind});
    (path, json!({ "get": get }))
}

/// The OpenAPI v2 document.
pub fn openapi_v2() -> Value {
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    for version in VERSIONS {
        let name = schema_name(version);
        let ok = json!({"description": "OK", "schema": {"$ref": format!("#/definitions/{name}")}});
        paths.extend([path_item(version, &ok)]);
        definitions.insert(name, schema(version));
    }
    let info = json!({"title": "wardle", "version": "v0"});
    json!({"swagger": "2.0", "info": info, "paths": paths, "definitions": definitions})
}

/// The index of OpenAPI v3 documents.
pub fn openapi_index() -> Value {
    let entry = |version: &str| {
        let url = format!("/openapi/v3/apis/{GROUP}/{version}?hash=H{version}");
        (format!("apis/{GROUP}/{version}"), json!({ "serverRelativeURL": url }))
    };
    json!({"paths": VERSIONS.map(entry).into_iter().collect::<Map<_, _>>()})
}

/// The OpenAPI v3 document of a version.
pub fn openapi_v3(version: &str) -> Value {
    let name = schema_name(version);
    let schema_reference = json!({"$ref": format!("#/components/schemas/{name}")});
    let ok = json!({"description": "OK", "content": {"application/json": {"schema": schema_reference}}});
    let paths: Map<String, Value> = [path_item(version, &ok)].into_iter().collect();
    let schemas: Map<String, Value> = [(name, schema(version))].into_iter().collect();
    let info = json!({"title": "wardle", "version": "v0"});
    json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}})
}

/// The Status of a code.
pub fn failure(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "from the backend", "code": code})
}

/// Returns the response to a ConversionReview, which converts between `spec.size` ("3") and `spec.replicas` (3).
/// `convert-fail` refuses, `convert-lose` changes a name.
pub fn convert(how: &str, review: &[u8]) -> Value {
    let review: Value = serde_json::from_slice(review).unwrap();
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().unwrap();
    let convert = |object: &Value| {
        let mut object = object.clone();
        object["apiVersion"] = desired.into();
        let root = object.as_object_mut().unwrap();
        let spec = root.entry("spec").or_insert_with(|| json!({})).as_object_mut().unwrap();
        if desired.ends_with("v1") {
            if let Some(replicas) = spec.shift_remove("replicas") {
                spec.insert("size".to_owned(), replicas.to_string().into());
            }
        } else if let Some(size) = spec.shift_remove("size") {
            let size: i64 = size.as_str().unwrap().parse().unwrap();
            spec.insert("replicas".to_owned(), size.into());
        }
        if how == "convert-lose" {
            object["metadata"]["name"] = "another".into();
        }
        object
    };
    let (result, objects) = match how {
        "convert-fail" => (json!({"status": "Failure", "message": "the backend cannot convert"}), Vec::new()),
        _ => (
            json!({"status": "Success"}),
            request["objects"].as_array().unwrap().iter().map(convert).collect(),
        ),
    };
    let response = json!({"uid": request["uid"], "result": result, "convertedObjects": objects});
    json!({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response})
}

/// Returns a description of the request.
pub fn echo(head: &Parts, body: &[u8], peer: Option<&str>) -> Value {
    let all = |name: &str| -> Vec<String> {
        head.headers
            .get_all(name)
            .iter()
            .map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
            .collect()
    };
    let starting = |prefix: &str| -> BTreeMap<String, Vec<String>> {
        let names = head.headers.keys().map(http::HeaderName::as_str).filter(|name| name.starts_with(prefix));
        let sorted = |name: &str| {
            let mut values = all(name);
            values.sort();
            (name.to_owned(), values)
        };
        names.map(sorted).collect()
    };
    let normalized: BTreeMap<&str, String> =
        SHOWN.into_iter().filter_map(|name| Some((name, all(name).pop()?))).collect();
    let noted: Vec<&str> =
        PRESENCE_HEADERS.into_iter().filter(|name| head.headers.contains_key(*name)).collect();
    let query = form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes());
    let mut query: Vec<(String, String)> = query.into_owned().collect();
    query.sort();
    json!({
        "kind": "Echo",
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "method": head.method.as_str(),
        "path": head.uri.path(),
        "query": query,
        "headers": normalized,
        "remote": starting("x-remote-"),
        "impersonate": starting("impersonate-"),
        "has": noted,
        "body": String::from_utf8_lossy(body),
        "clientCertificate": peer,
    })
}
