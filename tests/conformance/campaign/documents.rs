//! Documents of the servers: discovery in every form, and the OpenAPI documents of each group.

use serde_json::Value;

use super::compared_server::ComparedServer;
use crate::step::Step;

/// Media types of the lists of groups.
const FORMS: [&str; 12] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
    "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,application/json",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer",
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "text/html",
    "*/*",
];
/// Media types of the OpenAPI documents.
const DOCUMENTS: [&str; 6] = [
    "application/json",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "*/*",
];
/// Headers that are compared.
const SHOWN: [&str; 4] = ["content-type", "vary", "cache-control", "content-encoding"];

/// Returns requests for all documents, by the lists of the reference server.
pub async fn steps(server: &mut ComparedServer<'_>) -> Vec<Step> {
    let mut steps: Vec<Step> = ["/api", "/apis"].iter().flat_map(|path| forms(path, &FORMS)).collect();
    steps.extend(["/api", "/apis"].iter().flat_map(|path| conditional(path, FORMS[3])));
    steps.extend(["/api/v1", "/api/v2", "/apis/none", "/apis/apps/v9"].map(|path| get(path, FORMS[0])));
    let groups = server.response(&get("/apis", FORMS[0]), "").await;
    for group in groups["body"]["groups"].as_array().into_iter().flatten() {
        let name = group["name"].as_str().unwrap_or_default();
        steps.extend(FORMS[..3].iter().map(|form| get(&format!("/apis/{name}"), form)));
        for version in group["versions"].as_array().into_iter().flatten() {
            let version = version["groupVersion"].as_str().unwrap_or_default();
            steps.extend(FORMS[..4].iter().map(|form| get(&format!("/apis/{version}"), form)));
        }
    }
    steps.extend(openapi(server).await);
    for (at, step) in steps.iter_mut().enumerate() {
        step.name = format!("document {at}");
        step.show = SHOWN.map(str::to_owned).to_vec();
    }
    steps
}

async fn openapi(server: &mut ComparedServer<'_>) -> Vec<Step> {
    let mut steps = forms("/openapi/v2", &DOCUMENTS);
    steps.extend(forms("/openapi/v3", &DOCUMENTS));
    steps.extend(conditional("/openapi/v2", DOCUMENTS[0]));
    let index = server.response(&get("/openapi/v3", FORMS[0]), "").await;
    for document in index["body"]["paths"].as_object().into_iter().flat_map(|paths| paths.keys()) {
        let path = format!("/openapi/v3/{document}");
        steps.push(get(&path, DOCUMENTS[0]));
        steps.extend(conditional(&path, DOCUMENTS[0]));
        steps.push(get(&format!("{path}?hash=WRONG"), DOCUMENTS[0]));
    }
    steps.push(get("/openapi/v3/apis/none/v1", DOCUMENTS[0]));
    steps
}

fn get(path: &str, accept: &str) -> Step {
    Step {
        method: "GET".to_owned(),
        target: path.to_owned(),
        accept: Some(accept.to_owned()),
        ..Step::default()
    }
}

fn forms(path: &str, forms: &[&str]) -> Vec<Step> {
    forms.iter().map(|form| get(path, form)).collect()
}

/// Repeats a request with the ETag of the document, and with another one.
fn conditional(path: &str, accept: &str) -> Vec<Step> {
    let with = |etag: &str| Step {
        headers: [("if-none-match".to_owned(), etag.into())].into_iter().collect(),
        ..get(path, accept)
    };
    let first = Step { save: [("etag".to_owned(), "header:etag".to_owned())].into(), ..get(path, accept) };
    vec![first, with("${etag}"), with("\"other\""), with("*")]
}

/// Returns a document without descriptions, and with unordered lists sorted.
pub fn comparable(mut answer: Value) -> Value {
    strip(&mut answer);
    answer
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // Only texts: a field with that name is described by an object.
            if fields.get("description").is_some_and(Value::is_string) {
                fields.shift_remove("description");
            }
            if let Some(required) = fields.get_mut("required").and_then(Value::as_array_mut) {
                required.sort_by_cached_key(Value::to_string);
            }
            if let Some(hash) = fields.get_mut("serverRelativeURL") {
                // The hash of a document.
                *hash = hash.as_str().and_then(|url| url.split('?').next()).into();
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
