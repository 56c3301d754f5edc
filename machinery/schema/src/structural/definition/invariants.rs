//! Structural invariants: the skeleton of a schema has one type for each node, and logical operators only validate values.

use serde_json::Value;

use super::errors::Errors;
use super::props::{Additional, Props};
use super::{logical_operators, metadata};
use crate::structural::location::Location;

/// Level of a skeleton node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Root,
    Item,
    Field,
}

pub(super) fn validate(schema: &Value, level: Level, location: &Location<'_>, errors: &mut Errors) {
    let props = Props::of(schema);
    nested_nodes(&props, level, location, errors);
    extensions(&props, location, errors);
    logical_operators::logical_operators(
        &props,
        is_int_or_string_any_of(&props),
        is_int_or_string_all_of(&props),
        location,
        errors,
    );
    types(&props, level, location, errors);
    metadata::validate(&props, level == Level::Root, location, errors);
    if props.embedded && !props.preserves_unknown() && props.properties.is_none() {
        let text = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        location.field("properties").required(text, errors);
    }
}

fn nested_nodes(props: &Props<'_>, level: Level, location: &Location<'_>, errors: &mut Errors) {
    match props.item() {
        Some(item) => validate(item, Level::Item, &location.field("items"), errors),
        None if props.ty == "array" => location.field("items").required("must be specified", errors),
        None => {}
    }
    let field_location = location.field("properties");
    for (name, schema) in props.properties() {
        validate(schema, Level::Field, &field_location.key(name), errors);
    }
    let Some(additional) = props.additional else { return };
    let field_location = location.field("additionalProperties");
    if level == Level::Root {
        field_location.forbidden("must not be used at the root", errors);
    }
    if let Additional::Schema(schema) = additional {
        validate(schema, Level::Field, &field_location, errors);
    }
}

fn extensions(props: &Props<'_>, location: &Location<'_>, errors: &mut Errors) {
    let both = "must be false if x-kubernetes-int-or-string is true";
    if props.int_or_string && props.preserves_unknown() {
        location.field("x-kubernetes-preserve-unknown-fields").invalid_printed("true", both, errors);
    }
    if props.int_or_string && props.embedded {
        location.field("x-kubernetes-embedded-resource").invalid_printed("true", both, errors);
    }
}

fn types(props: &Props<'_>, level: Level, location: &Location<'_>, errors: &mut Errors) {
    let field_location = location.field("type");
    if props.embedded && props.ty != "object" {
        field_location.must_be(props.ty, "must be object if x-kubernetes-embedded-resource is true", errors);
    } else if props.ty.is_empty() && !props.int_or_string && !props.preserves_unknown() {
        let text = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        field_location.required(text, errors);
    }
    if props.embedded && props.additional.is_some() {
        let text = "must not be used if x-kubernetes-embedded-resource is set";
        location.field("additionalProperties").forbidden(text, errors);
    }
    if level == Level::Root && !props.ty.is_empty() && props.ty != "object" {
        field_location.invalid(props.ty, "must be object at the root", errors);
    }
}

/// True for `anyOf: [{type: integer}, {type: string}]` in this order, without other members.
fn is_int_or_string_any_of(props: &Props<'_>) -> bool {
    is_int_or_string(props.any_of)
}

/// True if the first branch of `allOf` is such an `anyOf`.
fn is_int_or_string_all_of(props: &Props<'_>) -> bool {
    props.all_of.first().is_some_and(|first| is_int_or_string(Props::of(first).any_of))
}

fn is_int_or_string(any_of: &[Value]) -> bool {
    let is_type =
        |clause: &Value, ty: &str| clause.as_object().is_some_and(|c| c.len() == 1) && clause["type"] == ty;
    matches!(any_of, [first, second] if is_type(first, "integer") && is_type(second, "string"))
}
