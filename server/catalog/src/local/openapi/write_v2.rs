//! Writes the part of a version 2 document.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::Serialize;

use super::definition::Definition;
use super::descriptions::Descriptions;
use super::meta::META_PREFIX;
use super::operation::{Body, Operation, PathItem, ResponseContent};
use super::parameter::Parameter;
use super::schema::{Dialect, KindRef, Schema, WriteOptions};
use super::write_v3::reason_phrase;

/// Upstream's names of the two shared request bodies.
const DELETE_OPTIONS_BODY: &str = "body-2Y1dVQaQ";
const PATCH_BODY: &str = "body-78PwaGsr";

#[derive(Serialize)]
struct Part<'a> {
    paths: IndexMap<&'a str, PathItemObject<'a>>,
    definitions: BTreeMap<String, Definition>,
    parameters: BTreeMap<&'a str, ParameterObject<'a>>,
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
    consumes: &'static [&'static str],
    produces: &'a [&'static str],
    schemes: [&'static str; 1],
    tags: [&'a str; 1],
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    operation_id: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<ParameterObject<'a>>,
    responses: IndexMap<&'static str, Response>,
    #[serde(rename = "x-kubernetes-action", skip_serializing_if = "Option::is_none")]
    action: Option<&'static str>,
    #[serde(rename = "x-kubernetes-group-version-kind", skip_serializing_if = "Option::is_none")]
    kind: Option<KindRef>,
}

#[derive(Serialize)]
struct Response {
    description: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Schema>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ParameterObject<'a> {
    Shared {
        #[serde(rename = "$ref")]
        reference: String,
    },
    Plain(PlainParameter<'a>),
    Body {
        name: &'static str,
        #[serde(rename = "in")]
        location: &'static str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        required: bool,
        schema: Box<Schema>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlainParameter<'a> {
    name: &'a str,
    #[serde(rename = "in")]
    location: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    required: bool,
    #[serde(rename = "type")]
    kind: &'a str,
    unique_items: bool,
}

/// Returns the part: paths, types and shared parameters.
pub(super) fn part<'a>(
    paths: &'a [PathItem<'_>],
    definitions: impl FnOnce(WriteOptions<'a>) -> BTreeMap<String, Definition>,
    descriptions: Option<&'a Descriptions>,
) -> Vec<u8> {
    let options = WriteOptions { dialect: Dialect::V2, descriptions };
    let part = Part {
        paths: paths.iter().map(|item| (item.path.as_str(), path_item(options, item))).collect(),
        definitions: definitions(options),
        parameters: shared_parameters(options, paths),
    };
    // Encoding maps with string keys cannot fail.
    serde_json::to_vec(&part).unwrap_or_default()
}

fn shared_parameters<'a>(
    options: WriteOptions<'a>,
    paths: &'a [PathItem<'_>],
) -> BTreeMap<&'a str, ParameterObject<'a>> {
    let operations = || paths.iter().flat_map(|item| &item.operations);
    let used = paths.iter().flat_map(|i| &i.parameters).chain(operations().flat_map(|o| &o.parameters));
    let mut shared: BTreeMap<_, _> =
        used.filter(|p| !p.shared_name.is_empty()).map(|p| (p.shared_name, plain(options, p))).collect();
    for operation in operations() {
        match operation.body {
            Some(Body::DeleteOptions) => {
                shared.insert(DELETE_OPTIONS_BODY, body(&format!("{META_PREFIX}DeleteOptions"), false));
            }
            Some(Body::Patch) => {
                shared.insert(PATCH_BODY, body(&format!("{META_PREFIX}Patch"), true));
            }
            _ => {}
        }
    }
    shared
}

fn path_item<'a>(options: WriteOptions<'a>, item: &'a PathItem<'_>) -> PathItemObject<'a> {
    PathItemObject {
        operations: item.operations.iter().map(|o| (o.method, operation(options, o))).collect(),
        parameters: item.parameters.iter().map(|p| parameter(options, p)).collect(),
    }
}

fn parameter<'a>(options: WriteOptions<'a>, parameter: &'a Parameter<'_>) -> ParameterObject<'a> {
    if parameter.shared_name.is_empty() {
        plain(options, parameter)
    } else {
        reference(parameter.shared_name)
    }
}

fn plain<'a>(options: WriteOptions<'a>, parameter: &'a Parameter<'_>) -> ParameterObject<'a> {
    ParameterObject::Plain(PlainParameter {
        name: parameter.name,
        location: parameter.location,
        description: options.description(parameter.description),
        required: parameter.required(),
        kind: parameter.kind,
        unique_items: true,
    })
}

fn reference(name: &str) -> ParameterObject<'static> {
    ParameterObject::Shared { reference: format!("#/parameters/{name}") }
}

fn body(type_name: &str, required: bool) -> ParameterObject<'static> {
    let schema = Box::new(Schema::reference_to(Dialect::V2, type_name));
    ParameterObject::Body { name: "body", location: "body", required, schema }
}

fn operation<'a>(options: WriteOptions<'a>, operation: &'a Operation<'_>) -> OperationObject<'a> {
    let produces = operation.response_media.types();
    let first = operation.body.as_ref().map(|body_type| match body_type {
        Body::Object(name) => body(name, true),
        Body::DeleteOptions => reference(DELETE_OPTIONS_BODY),
        Body::Patch => reference(PATCH_BODY),
    });
    let response = |(code, content): &(&'static str, ResponseContent)| {
        let schema = Some(Schema::of_response(Dialect::V2, content));
        (*code, Response { description: reason_phrase(code), schema })
    };
    let unauthorized = Response { description: "Unauthorized", schema: None };
    OperationObject {
        consumes: operation.request_media.types(operation.response_media),
        produces,
        schemes: ["https"],
        tags: [&operation.tag],
        description: options.description(&operation.description),
        operation_id: &operation.id,
        parameters: first
            .into_iter()
            .chain(operation.parameters.iter().map(|p| parameter(options, p)))
            .collect(),
        responses: operation.responses.iter().map(response).chain([("401", unauthorized)]).collect(),
        action: operation.action.as_ref().map(|(action, _)| *action),
        kind: operation.action.as_ref().map(|(_, gvk)| KindRef::from(gvk)),
    }
}
