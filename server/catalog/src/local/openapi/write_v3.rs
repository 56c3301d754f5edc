//! Writes a version 3 document.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::Serialize;

use super::definition::Definition;
use super::descriptions::Descriptions;
use super::meta::META_PREFIX;
use super::operation::{Body, Operation, PathItem, ResponseContent as Answered};
use super::parameter::Parameter;
use super::schema::{Dialect, KindRef, Schema, WriteOptions};

#[derive(Serialize)]
struct Document<'a> {
    openapi: &'static str,
    info: Info<'a>,
    paths: IndexMap<&'a str, PathItemObject<'a>>,
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
    location: &'static str,
}

#[derive(Serialize)]
struct PathItemObject<'a> {
    #[serde(flatten)]
    operations: IndexMap<&'static str, OperationObject<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<ParameterObject<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OperationObject<'a> {
    tags: [&'a str; 1],
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    operation_id: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<ParameterObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_body: Option<RequestBody>,
    responses: IndexMap<&'static str, Response>,
    #[serde(rename = "x-kubernetes-action", skip_serializing_if = "Option::is_none")]
    action: Option<&'static str>,
    #[serde(rename = "x-kubernetes-group-version-kind", skip_serializing_if = "Option::is_none")]
    kind: Option<KindRef>,
}

#[derive(Serialize)]
struct ParameterObject<'a> {
    name: &'a str,
    #[serde(rename = "in")]
    location: &'static str,
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
    content: IndexMap<&'static str, MediaTypeObject>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    required: bool,
}

#[derive(Serialize)]
struct Response {
    description: &'static str,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    content: IndexMap<&'static str, MediaTypeObject>,
}

#[derive(Serialize)]
struct MediaTypeObject {
    schema: Schema,
}

/// Title and version of all documents of custom resources, as upstream.
const CUSTOM_RESOURCES_INFO: Info<'static> = Info { title: "Kubernetes CRD Swagger", version: "v0.1.0" };

/// Returns the document.
pub(super) fn document<'a>(
    custom: bool,
    paths: &'a [PathItem<'_>],
    definitions: impl FnOnce(WriteOptions<'a>) -> BTreeMap<String, Definition>,
    descriptions: Option<&'a Descriptions>,
    version: &'a str,
) -> Vec<u8> {
    let options = WriteOptions { dialect: Dialect::V3, descriptions };
    let bearer = SecurityScheme {
        kind: "apiKey",
        description: "Bearer Token authentication",
        name: "authorization",
        location: "header",
    };
    let document = Document {
        openapi: "3.0.0",
        info: if custom { CUSTOM_RESOURCES_INFO } else { Info { title: "Kubernetes", version } },
        paths: paths.iter().map(|item| (item.path.as_str(), path_item(options, item))).collect(),
        components: Components {
            schemas: definitions(options),
            // Documents of custom resources contain no security scheme.
            security_schemes: (!custom).then_some(("BearerToken", bearer)).into_iter().collect(),
        },
    };
    // Encoding maps with string keys cannot fail.
    serde_json::to_vec(&document).unwrap_or_default()
}

fn path_item<'a>(options: WriteOptions<'a>, item: &'a PathItem<'_>) -> PathItemObject<'a> {
    PathItemObject {
        operations: item.operations.iter().map(|o| (o.method, operation(options, o))).collect(),
        parameters: item.parameters.iter().map(|p| parameter(options, p)).collect(),
    }
}

fn parameter<'a>(options: WriteOptions<'a>, parameter: &'a Parameter<'_>) -> ParameterObject<'a> {
    ParameterObject {
        name: parameter.name,
        location: parameter.location,
        description: options.description(parameter.description),
        required: parameter.required(),
        schema: ParameterSchema { kind: parameter.kind, unique_items: true },
    }
}

fn operation<'a>(options: WriteOptions<'a>, operation: &'a Operation<'_>) -> OperationObject<'a> {
    let content = |response: &Answered| {
        let schema = || MediaTypeObject { schema: Schema::of_response(Dialect::V3, response) };
        operation.response_media.types().iter().map(|media| (*media, schema())).collect()
    };
    let responses =
        operation.responses.iter().map(|(code, response)| (*code, response_object(code, content(response))));
    let unauthorized = Response { description: "Unauthorized", content: IndexMap::new() };
    OperationObject {
        tags: [&operation.tag],
        description: options.description(&operation.description),
        operation_id: &operation.id,
        parameters: operation.parameters.iter().map(|p| parameter(options, p)).collect(),
        request_body: operation.body.as_ref().map(|body| request_body(body, operation)),
        responses: responses.chain([("401", unauthorized)]).collect(),
        action: operation.action.as_ref().map(|(action, _)| *action),
        kind: operation.action.as_ref().map(|(_, gvk)| KindRef::from(gvk)),
    }
}

fn response_object(code: &str, content: IndexMap<&'static str, MediaTypeObject>) -> Response {
    Response { description: reason_phrase(code), content }
}

/// Returns the HTTP reason phrase of a status code.
pub(super) fn reason_phrase(code: &str) -> &'static str {
    match code {
        "201" => "Created",
        "202" => "Accepted",
        _ => "OK",
    }
}

fn request_body(body: &Body, operation: &Operation<'_>) -> RequestBody {
    let (name, required) = match body {
        Body::Object(name) => (name.clone(), true),
        Body::DeleteOptions => (format!("{META_PREFIX}DeleteOptions"), false),
        Body::Patch => (format!("{META_PREFIX}Patch"), true),
    };
    let media = operation.request_media.types(operation.response_media).iter();
    let content = media
        .map(|media| (*media, MediaTypeObject { schema: Schema::reference_to(Dialect::V3, &name) }))
        .collect();
    RequestBody { content, required }
}
