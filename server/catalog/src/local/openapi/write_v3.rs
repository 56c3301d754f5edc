//! Writes a version 3 document.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::Serialize;

use super::definition::Definition;
use super::meta::META;
use super::operation::{Body, Content as Answered, Operation, PathItem};
use super::parameter::Parameter;
use super::schema::{Dialect, KindRef, Pen, Schema};
use super::words::Words;

#[derive(Serialize)]
struct Document<'a> {
    openapi: &'static str,
    info: Info<'a>,
    paths: IndexMap<&'a str, Item<'a>>,
    components: Components,
}

#[derive(Serialize)]
struct Info<'a> {
    title: &'static str,
    version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Components {
    schemas: BTreeMap<String, Definition>,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    security_schemes: IndexMap<&'static str, SecurityScheme>,
}

#[derive(Serialize)]
struct SecurityScheme {
    #[serde(rename = "type")]
    kind: &'static str,
    description: &'static str,
    name: &'static str,
    #[serde(rename = "in")]
    place: &'static str,
}

#[derive(Serialize)]
struct Item<'a> {
    #[serde(flatten)]
    operations: IndexMap<&'static str, WrittenOperation<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<WrittenParameter<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenOperation<'a> {
    tags: [&'a str; 1],
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    operation_id: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<WrittenParameter<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_body: Option<RequestBody>,
    responses: IndexMap<&'static str, Response>,
    #[serde(rename = "x-kubernetes-action", skip_serializing_if = "Option::is_none")]
    action: Option<&'static str>,
    #[serde(rename = "x-kubernetes-group-version-kind", skip_serializing_if = "Option::is_none")]
    kind: Option<KindRef>,
}

#[derive(Serialize)]
struct WrittenParameter<'a> {
    name: &'a str,
    #[serde(rename = "in")]
    place: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    required: bool,
    schema: ParameterSchema<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ParameterSchema<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    unique_items: bool,
}

#[derive(Serialize)]
struct RequestBody {
    content: IndexMap<&'static str, Content>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    required: bool,
}

#[derive(Serialize)]
struct Response {
    description: &'static str,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    content: IndexMap<&'static str, Content>,
}

#[derive(Serialize)]
struct Content {
    schema: Schema,
}

/// Title and version of all documents of custom resources, as upstream.
const CUSTOM: Info<'static> = Info { title: "Kubernetes CRD Swagger", version: "v0.1.0" };

/// Returns the document.
pub(super) fn document<'a>(
    custom: bool,
    paths: &'a [PathItem<'_>],
    definitions: impl FnOnce(Pen<'a>) -> BTreeMap<String, Definition>,
    words: Option<&'a Words>,
    version: &'a str,
) -> Vec<u8> {
    let pen = Pen { dialect: Dialect::V3, words };
    let bearer = SecurityScheme {
        kind: "apiKey",
        description: "Bearer Token authentication",
        name: "authorization",
        place: "header",
    };
    let document = Document {
        openapi: "3.0.0",
        info: if custom { CUSTOM } else { Info { title: "Kubernetes", version } },
        paths: paths.iter().map(|item| (item.path.as_str(), written(pen, item))).collect(),
        components: Components {
            schemas: definitions(pen),
            // Documents of custom resources contain no security scheme.
            security_schemes: (!custom).then_some(("BearerToken", bearer)).into_iter().collect(),
        },
    };
    // Encoding maps with string keys cannot fail.
    serde_json::to_vec(&document).unwrap_or_default()
}

fn written<'a>(pen: Pen<'a>, item: &'a PathItem<'_>) -> Item<'a> {
    Item {
        operations: item.operations.iter().map(|o| (o.method, operation(pen, o))).collect(),
        parameters: item.parameters.iter().map(|p| parameter(pen, p)).collect(),
    }
}

fn parameter<'a>(pen: Pen<'a>, parameter: &'a Parameter<'_>) -> WrittenParameter<'a> {
    WrittenParameter {
        name: parameter.name,
        place: parameter.place,
        description: pen.about(parameter.about),
        required: parameter.required(),
        schema: ParameterSchema { kind: parameter.kind, unique_items: true },
    }
}

fn operation<'a>(pen: Pen<'a>, operation: &'a Operation<'_>) -> WrittenOperation<'a> {
    let content = |answered: &Answered| {
        let schema = || Content { schema: Schema::answered(Dialect::V3, answered) };
        operation.media.types().iter().map(|media| (*media, schema())).collect()
    };
    let answers = operation.responses.iter().map(|(code, what)| (*code, ok(code, content(what))));
    let unauthorized = Response { description: "Unauthorized", content: IndexMap::new() };
    WrittenOperation {
        tags: [&operation.tag],
        description: pen.about(&operation.about),
        operation_id: &operation.id,
        parameters: operation.parameters.iter().map(|p| parameter(pen, p)).collect(),
        request_body: operation.body.as_ref().map(|body| request_body(body, operation)),
        responses: answers.chain([("401", unauthorized)]).collect(),
        action: operation.action.as_ref().map(|(action, _)| *action),
        kind: operation.action.as_ref().map(|(_, gvk)| KindRef::from(gvk)),
    }
}

fn ok(code: &str, content: IndexMap<&'static str, Content>) -> Response {
    Response { description: description(code), content }
}

/// Returns the HTTP reason phrase of a status code.
pub(super) fn description(code: &str) -> &'static str {
    match code {
        "201" => "Created",
        "202" => "Accepted",
        _ => "OK",
    }
}

fn request_body(body: &Body, operation: &Operation<'_>) -> RequestBody {
    let (name, required) = match body {
        Body::Object(name) => (name.clone(), true),
        Body::DeleteOptions => (format!("{META}DeleteOptions"), false),
        Body::Patch => (format!("{META}Patch"), true),
    };
    let media = operation.takes.types(operation.media).iter();
    let content = media.map(|media| (*media, Content { schema: Schema::to(Dialect::V3, &name) })).collect();
    RequestBody { content, required }
}
