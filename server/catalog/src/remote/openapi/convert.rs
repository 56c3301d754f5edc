//! Converts a part of version 2 to a version 3 document, for backends without version 3.
//!
//! Keeps the data that clients use: types, and the kind and action of each operation. Bodies and responses become media types;
//! other keys of version 2 are omitted.

use std::collections::HashMap;

use indexmap::IndexMap;
use portico_machinery::openapi::{RawMembers, SpecV2};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

type Members = IndexMap<String, Box<RawValue>>;

#[derive(Serialize)]
struct Document {
    openapi: &'static str,
    info: Info,
    paths: RawMembers,
    components: Components,
}

#[derive(Serialize)]
struct Info {
    title: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Components {
    schemas: RawMembers,
}

#[derive(Serialize)]
struct Content {
    schema: Box<RawValue>,
}

/// Returns the document.
pub(super) fn v3(part: &SpecV2) -> Vec<u8> {
    let document = Document {
        openapi: "3.0.0",
        info: Info { title: "converted from version 2", version: "" },
        paths: part.paths.iter().map(|(p, item)| (p.clone(), path_item(item, &part.parameters))).collect(),
        components: Components {
            schemas: part
                .definitions
                .iter()
                .map(|(n, piece)| (n.clone(), with_v3_references(piece)))
                .collect(),
        },
    };
    // Maps with string keys always encode.
    serde_json::to_vec(&document).unwrap_or_default()
}

/// Replaces references to definitions by references to schemas.
fn with_v3_references(piece: &RawValue) -> Box<RawValue> {
    let text = piece.get().replace(r##""$ref":"#/definitions/"##, r##""$ref":"#/components/schemas/"##);
    RawValue::from_string(text).unwrap_or_else(|_| piece.to_owned())
}

fn members(piece: &RawValue) -> Members {
    serde_json::from_str(piece.get()).unwrap_or_default()
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_default()
}

fn path_item(item: &RawValue, shared_parameters: &RawMembers) -> Box<RawValue> {
    let mut converted = Members::new();
    for (name, member) in members(item) {
        let member = match name.as_str() {
            "parameters" => raw(&split_parameters(&member, shared_parameters).plain),
            "get" | "put" | "post" | "delete" | "patch" | "head" | "options" => {
                raw(&operation(&member, shared_parameters))
            }
            _ => member,
        };
        converted.insert(name, member);
    }
    raw(&converted)
}

fn operation(operation: &RawValue, shared_parameters: &RawMembers) -> Members {
    let mut converted = members(operation);
    let list = |all: &mut Members, name: &str| -> Vec<String> {
        all.shift_remove(name).and_then(|l| serde_json::from_str(l.get()).ok()).unwrap_or_default()
    };
    let (consumes, produces) = (list(&mut converted, "consumes"), list(&mut converted, "produces"));
    converted.shift_remove("schemes");
    if let Some(parameters) = converted.get("parameters").cloned() {
        let split = split_parameters(&parameters, shared_parameters);
        converted.insert("parameters".to_owned(), raw(&split.plain));
        if let Some(schema) = split.body {
            let body = IndexMap::from([("content", raw(&content(&consumes, &schema)))]);
            converted.insert("requestBody".to_owned(), raw(&body));
        }
    }
    if let Some(responses) = converted.get("responses").cloned() {
        let by_code: Members =
            members(&responses).into_iter().map(|(code, r)| (code, response(&r, &produces))).collect();
        converted.insert("responses".to_owned(), raw(&by_code));
    }
    converted
}

fn content(media: &[String], schema: &RawValue) -> HashMap<String, Content> {
    let media_types = if media.is_empty() { &["*/*".to_owned()][..] } else { media };
    media_types.iter().map(|m| (m.clone(), Content { schema: with_v3_references(schema) })).collect()
}

fn response(response: &RawValue, produces: &[String]) -> Box<RawValue> {
    let mut members = members(response);
    if let Some(schema) = members.shift_remove("schema") {
        members.insert("content".to_owned(), raw(&content(produces, &schema)));
    }
    raw(&members)
}

#[derive(Default)]
struct SplitParameters {
    plain: Vec<Members>,
    body: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ParameterHead {
    #[serde(rename = "$ref")]
    reference: String,
    #[serde(rename = "in")]
    location: String,
}

/// Separates the body from the other parameters. Moves the types of parameters into schemas; returns the schema of the body.
fn split_parameters(parameters: &RawValue, shared_parameters: &RawMembers) -> SplitParameters {
    const OF_TYPE: [&str; 6] = ["type", "format", "items", "enum", "uniqueItems", "default"];
    let list: Vec<Box<RawValue>> = serde_json::from_str(parameters.get()).unwrap_or_default();
    let mut split = SplitParameters::default();
    for parameter in list {
        let head: ParameterHead = serde_json::from_str(parameter.get()).unwrap_or_default();
        let piece = head
            .reference
            .strip_prefix("#/parameters/")
            .and_then(|n| shared_parameters.get(n))
            .unwrap_or(&parameter);
        let head: ParameterHead = serde_json::from_str(piece.get()).unwrap_or_default();
        let mut members = members(piece);
        if head.location == "body" {
            split.body = members.shift_remove("schema");
            continue;
        }
        let schema: Members =
            OF_TYPE.iter().filter_map(|n| Some(((*n).to_owned(), members.shift_remove(*n)?))).collect();
        members.insert("schema".to_owned(), raw(&schema));
        split.plain.push(members);
    }
    split
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_bodies_and_answers_survive_the_conversion() {
        let part = SpecV2::canonical(
            br##"{"paths":{"/apis/g/v1/x":{"parameters":[{"$ref":"#/parameters/pretty"}],"post":{"consumes":["application/json"],
              "produces":["application/json"],"schemes":["https"],"operationId":"o","x-kubernetes-action":"post",
              "parameters":[{"in":"body","name":"body","schema":{"$ref":"#/definitions/X"}},{"in":"query","name":"q","type":"string"}],
              "responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/X"}}}}}},
              "definitions":{"X":{"type":"object"}},"parameters":{"pretty":{"in":"query","name":"pretty","type":"string"}}}"##,
        )
        .unwrap();
        let expected = concat!(
            r##"{"openapi":"3.0.0","info":{"title":"converted from version 2","version":""},"paths":{"/apis/g/v1/x":{"##,
            r##""parameters":[{"in":"query","name":"pretty","schema":{"type":"string"}}],"post":{"operationId":"o","##,
            r##""x-kubernetes-action":"post","parameters":[{"in":"query","name":"q","schema":{"type":"string"}}],"##,
            r##""responses":{"200":{"description":"OK","content":{"application/json":{"schema":{"$ref":"#/components/schemas/X"}}}}},"##,
            r##""requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/X"}}}}}}},"##,
            r##""components":{"schemas":{"X":{"type":"object"}}}}"##
        );
        assert_eq!(String::from_utf8(v3(&part)).unwrap(), expected);
    }
}
