//! Structural invariants: the skeleton of a schema has one type for each node, and logical operators only validate values.

use serde_json::Value;

use super::errors::Errors;
use super::props::{Additional, Props};
use super::{metadata, nested};
use crate::structural::at::At;

/// Level of a skeleton node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Root,
    Item,
    Field,
}

pub(super) fn validate(schema: &Value, level: Level, at: &At<'_>, errors: &mut Errors) {
    let props = Props::of(schema);
    below(&props, level, at, errors);
    extensions(&props, at, errors);
    nested::logical_operators(&props, is_usual_any_of(&props), is_usual_all_of(&props), at, errors);
    types(&props, level, at, errors);
    metadata::validate(&props, level == Level::Root, at, errors);
    if props.embedded && !props.preserves() && props.properties.is_none() {
        let text = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        at.field("properties").required(text, errors);
    }
}

fn below(props: &Props<'_>, level: Level, at: &At<'_>, errors: &mut Errors) {
    match props.item() {
        Some(item) => validate(item, Level::Item, &at.field("items"), errors),
        None if props.ty == "array" => at.field("items").required("must be specified", errors),
        None => {}
    }
    let here = at.field("properties");
    for (name, schema) in props.properties() {
        validate(schema, Level::Field, &here.key(name), errors);
    }
    let Some(additional) = props.additional else { return };
    let here = at.field("additionalProperties");
    if level == Level::Root {
        here.forbidden("must not be used at the root", errors);
    }
    if let Additional::Schema(schema) = additional {
        validate(schema, Level::Field, &here, errors);
    }
}

fn extensions(props: &Props<'_>, at: &At<'_>, errors: &mut Errors) {
    let both = "must be false if x-kubernetes-int-or-string is true";
    if props.int_or_string && props.preserves() {
        at.field("x-kubernetes-preserve-unknown-fields").invalid_printed("true", both, errors);
    }
    if props.int_or_string && props.embedded {
        at.field("x-kubernetes-embedded-resource").invalid_printed("true", both, errors);
    }
}

fn types(props: &Props<'_>, level: Level, at: &At<'_>, errors: &mut Errors) {
    let here = at.field("type");
    if props.embedded && props.ty != "object" {
        here.must_be(props.ty, "must be object if x-kubernetes-embedded-resource is true", errors);
    } else if props.ty.is_empty() && !props.int_or_string && !props.preserves() {
        let text = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        here.required(text, errors);
    }
    if props.embedded && props.additional.is_some() {
        let text = "must not be used if x-kubernetes-embedded-resource is set";
        at.field("additionalProperties").forbidden(text, errors);
    }
    if level == Level::Root && !props.ty.is_empty() && props.ty != "object" {
        here.invalid(props.ty, "must be object at the root", errors);
    }
}

/// True for `anyOf: [{type: integer}, {type: string}]` in this order, without other members.
fn is_usual_any_of(props: &Props<'_>) -> bool {
    is_int_or_string(props.any_of)
}

/// True if the first branch of `allOf` is such an `anyOf`.
fn is_usual_all_of(props: &Props<'_>) -> bool {
    props.all_of.first().is_some_and(|first| is_int_or_string(Props::of(first).any_of))
}

fn is_int_or_string(any_of: &[Value]) -> bool {
    let is_type =
        |clause: &Value, ty: &str| clause.as_object().is_some_and(|c| c.len() == 1) && clause["type"] == ty;
    matches!(any_of, [first, second] if is_type(first, "integer") && is_type(second, "string"))
}
