//! Converts a part of version 2 to a version 3 document, for backends without version 3.
//!
//! Keeps the data that clients use: types, and the kind and action of each operation. Bodies and responses become media types;
//! other keys of version 2 are omitted.

use std::collections::HashMap;

use indexmap::IndexMap;
use portico_machinery::openapi::{Pieces, SpecV2};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

type Members = IndexMap<String, Box<RawValue>>;

#[derive(Serialize)]
struct Document {
    openapi: &'static str,
    info: Info,
    paths: Pieces,
    components: Components,
}

#[derive(Serialize)]
struct Info {
    title: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Components {
    schemas: Pieces,
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
            schemas: part.definitions.iter().map(|(n, piece)| (n.clone(), relocated(piece))).collect(),
        },
    };
    // Maps with string keys always encode.
    serde_json::to_vec(&document).unwrap_or_default()
}

/// Replaces references to definitions by references to schemas.
fn relocated(piece: &RawValue) -> Box<RawValue> {
    let text = piece.get().replace(r##""$ref":"#/definitions/"##, r##""$ref":"#/components/schemas/"##);
    RawValue::from_string(text).unwrap_or_else(|_| piece.to_owned())
}

fn members(piece: &RawValue) -> Members {
    serde_json::from_str(piece.get()).unwrap_or_default()
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_default()
}

fn path_item(item: &RawValue, shared: &Pieces) -> Box<RawValue> {
    let mut written = Members::new();
    for (name, member) in members(item) {
        let member = match name.as_str() {
            "parameters" => raw(&split(&member, shared).plain),
            "get" | "put" | "post" | "delete" | "patch" | "head" | "options" => {
                raw(&operation(&member, shared))
            }
            _ => member,
        };
        written.insert(name, member);
    }
    raw(&written)
}

fn operation(operation: &RawValue, shared: &Pieces) -> Members {
    let mut all = members(operation);
    let list = |all: &mut Members, name: &str| -> Vec<String> {
        all.shift_remove(name).and_then(|l| serde_json::from_str(l.get()).ok()).unwrap_or_default()
    };
    let (consumes, produces) = (list(&mut all, "consumes"), list(&mut all, "produces"));
    all.shift_remove("schemes");
    if let Some(parameters) = all.get("parameters").cloned() {
        let split = split(&parameters, shared);
        all.insert("parameters".to_owned(), raw(&split.plain));
        if let Some(schema) = split.body {
            let body = IndexMap::from([("content", raw(&content(&consumes, &schema)))]);
            all.insert("requestBody".to_owned(), raw(&body));
        }
    }
    if let Some(responses) = all.get("responses").cloned() {
        let written: Members =
            members(&responses).into_iter().map(|(code, r)| (code, response(&r, &produces))).collect();
        all.insert("responses".to_owned(), raw(&written));
    }
    all
}

fn content(media: &[String], schema: &RawValue) -> HashMap<String, Content> {
    let all = if media.is_empty() { &["*/*".to_owned()][..] } else { media };
    all.iter().map(|m| (m.clone(), Content { schema: relocated(schema) })).collect()
}

fn response(response: &RawValue, produces: &[String]) -> Box<RawValue> {
    let mut all = members(response);
    if let Some(schema) = all.shift_remove("schema") {
        all.insert("content".to_owned(), raw(&content(produces, &schema)));
    }
    raw(&all)
}

#[derive(Default)]
struct Split {
    plain: Vec<Members>,
    body: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    #[serde(rename = "$ref")]
    reference: String,
    #[serde(rename = "in")]
    place: String,
}

/// Separates the body from the other parameters. Moves the types of parameters into schemas; returns the schema of the body.
fn split(parameters: &RawValue, shared: &Pieces) -> Split {
    const OF_TYPE: [&str; 6] = ["type", "format", "items", "enum", "uniqueItems", "default"];
    let list: Vec<Box<RawValue>> = serde_json::from_str(parameters.get()).unwrap_or_default();
    let mut split = Split::default();
    for parameter in list {
        let named: Named = serde_json::from_str(parameter.get()).unwrap_or_default();
        let piece =
            named.reference.strip_prefix("#/parameters/").and_then(|n| shared.get(n)).unwrap_or(&parameter);
        let named: Named = serde_json::from_str(piece.get()).unwrap_or_default();
        let mut all = members(piece);
        if named.place == "body" {
            split.body = all.shift_remove("schema");
            continue;
        }
        let schema: Members =
            OF_TYPE.iter().filter_map(|n| Some(((*n).to_owned(), all.shift_remove(*n)?))).collect();
        all.insert("schema".to_owned(), raw(&schema));
        split.plain.push(all);
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
        let want = concat!(
            r##"{"openapi":"3.0.0","info":{"title":"converted from version 2","version":""},"paths":{"/apis/g/v1/x":{"##,
            r##""parameters":[{"in":"query","name":"pretty","schema":{"type":"string"}}],"post":{"operationId":"o","##,
            r##""x-kubernetes-action":"post","parameters":[{"in":"query","name":"q","schema":{"type":"string"}}],"##,
            r##""responses":{"200":{"description":"OK","content":{"application/json":{"schema":{"$ref":"#/components/schemas/X"}}}}},"##,
            r##""requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/X"}}}}}}},"##,
            r##""components":{"schemas":{"X":{"type":"object"}}}}"##
        );
        assert_eq!(String::from_utf8(v3(&part)).unwrap(), want);
    }
}
