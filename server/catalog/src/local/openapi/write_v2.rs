//! Writes the part of a version 2 document.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::Serialize;

use super::definition::Definition;
use super::meta::META;
use super::operation::{Body, Content, Operation, PathItem};
use super::parameter::Parameter;
use super::schema::{Dialect, KindRef, Pen, Schema};
use super::words::Words;
use super::write_v3::description;

/// Upstream's names of the two shared request bodies.
const DELETE_OPTIONS: &str = "body-2Y1dVQaQ";
const PATCH: &str = "body-78PwaGsr";

#[derive(Serialize)]
struct Part<'a> {
    paths: IndexMap<&'a str, Item<'a>>,
    definitions: BTreeMap<String, Definition>,
    parameters: BTreeMap<&'a str, WrittenParameter<'a>>,
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
    consumes: &'static [&'static str],
    produces: &'a [&'static str],
    schemes: [&'static str; 1],
    tags: [&'a str; 1],
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    operation_id: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<WrittenParameter<'a>>,
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
enum WrittenParameter<'a> {
    Shared {
        #[serde(rename = "$ref")]
        reference: String,
    },
    Plain(PlainParameter<'a>),
    Body {
        name: &'static str,
        #[serde(rename = "in")]
        place: &'static str,
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
    place: &'static str,
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
    definitions: impl FnOnce(Pen<'a>) -> BTreeMap<String, Definition>,
    words: Option<&'a Words>,
) -> Vec<u8> {
    let pen = Pen { dialect: Dialect::V2, words };
    let part = Part {
        paths: paths.iter().map(|item| (item.path.as_str(), written(pen, item))).collect(),
        definitions: definitions(pen),
        parameters: shared(pen, paths),
    };
    // Encoding maps with string keys cannot fail.
    serde_json::to_vec(&part).unwrap_or_default()
}

fn shared<'a>(pen: Pen<'a>, paths: &'a [PathItem<'_>]) -> BTreeMap<&'a str, WrittenParameter<'a>> {
    let operations = || paths.iter().flat_map(|item| &item.operations);
    let used = paths.iter().flat_map(|i| &i.parameters).chain(operations().flat_map(|o| &o.parameters));
    let mut shared: BTreeMap<_, _> =
        used.filter(|p| !p.shared.is_empty()).map(|p| (p.shared, plain(pen, p))).collect();
    for operation in operations() {
        match operation.body {
            Some(Body::DeleteOptions) => {
                shared.insert(DELETE_OPTIONS, body(&format!("{META}DeleteOptions"), false));
            }
            Some(Body::Patch) => {
                shared.insert(PATCH, body(&format!("{META}Patch"), true));
            }
            _ => {}
        }
    }
    shared
}

fn written<'a>(pen: Pen<'a>, item: &'a PathItem<'_>) -> Item<'a> {
    Item {
        operations: item.operations.iter().map(|o| (o.method, operation(pen, o))).collect(),
        parameters: item.parameters.iter().map(|p| parameter(pen, p)).collect(),
    }
}

fn parameter<'a>(pen: Pen<'a>, parameter: &'a Parameter<'_>) -> WrittenParameter<'a> {
    if parameter.shared.is_empty() { plain(pen, parameter) } else { reference(parameter.shared) }
}

fn plain<'a>(pen: Pen<'a>, parameter: &'a Parameter<'_>) -> WrittenParameter<'a> {
    WrittenParameter::Plain(PlainParameter {
        name: parameter.name,
        place: parameter.place,
        description: pen.about(parameter.about),
        required: parameter.required(),
        kind: parameter.kind,
        unique_items: true,
    })
}

fn reference(name: &str) -> WrittenParameter<'static> {
    WrittenParameter::Shared { reference: format!("#/parameters/{name}") }
}

fn body(type_name: &str, required: bool) -> WrittenParameter<'static> {
    let schema = Box::new(Schema::to(Dialect::V2, type_name));
    WrittenParameter::Body { name: "body", place: "body", required, schema }
}

fn operation<'a>(pen: Pen<'a>, operation: &'a Operation<'_>) -> WrittenOperation<'a> {
    let produces = operation.media.types();
    let first = operation.body.as_ref().map(|taken| match taken {
        Body::Object(name) => body(name, true),
        Body::DeleteOptions => reference(DELETE_OPTIONS),
        Body::Patch => reference(PATCH),
    });
    let answer = |(code, content): &(&'static str, Content)| {
        let schema = Some(Schema::answered(Dialect::V2, content));
        (*code, Response { description: description(code), schema })
    };
    let unauthorized = Response { description: "Unauthorized", schema: None };
    WrittenOperation {
        consumes: operation.takes.types(operation.media),
        produces,
        schemes: ["https"],
        tags: [&operation.tag],
        description: pen.about(&operation.about),
        operation_id: &operation.id,
        parameters: first.into_iter().chain(operation.parameters.iter().map(|p| parameter(pen, p))).collect(),
        responses: operation.responses.iter().map(answer).chain([("401", unauthorized)]).collect(),
        action: operation.action.as_ref().map(|(action, _)| *action),
        kind: operation.action.as_ref().map(|(_, gvk)| KindRef::from(gvk)),
    }
}
