//! Branches of `allOf`, `anyOf`, `oneOf` and `not`: conditions on values, without structure.

use serde_json::Value;

use super::errors::Errors;
use super::pattern;
use super::props::{Additional, Props};
use crate::structural::location::Location;

/// Validates the logical operators of a node and its pattern. The two usual forms of int-or-string may contain types.
pub(super) fn logical_operators(
    props: &Props<'_>,
    usual_any_of: bool,
    usual_all_of: bool,
    location: &Location<'_>,
    errors: &mut Errors,
) {
    let mut each = |name: &str, schemas: &[Value], first_usual: bool| {
        let field_location = location.field(name);
        for (index, schema) in schemas.iter().enumerate() {
            validate(schema, first_usual && index == 0, &field_location.index(index), errors);
        }
    };
    if !usual_any_of {
        each("anyOf", props.any_of, false);
    }
    each("allOf", props.all_of, usual_all_of);
    each("oneOf", props.one_of, false);
    if let Some(schema) = props.not {
        validate(schema, false, &location.field("not"), errors);
    }
    pattern::validate(props.pattern, &location.field("pattern"), errors);
}

fn validate(schema: &Value, usual_any_of: bool, location: &Location<'_>, errors: &mut Errors) {
    let props = Props::of(schema);
    logical_operators(&props, usual_any_of, false, location, errors);
    if let Some(item) = props.item() {
        validate(item, false, &location.field("items"), errors);
    }
    let field_location = location.field("properties");
    for (name, schema) in props.properties() {
        validate(schema, false, &field_location.key(name), errors);
    }
    for (name, detail) in forbidden(&props) {
        location.field(name).forbidden(detail, errors);
    }
    if props.property("metadata").is_some() {
        field_location.key("metadata").forbidden("must not be specified in a nested context", errors);
    }
}

const EMPTY: &str = "must be empty to be structural";
const UNDEFINED: &str = "must be undefined to be structural";
const FALSE: &str = "must be false to be structural";

/// Returns the members that are not allowed in a branch.
fn forbidden(props: &Props<'_>) -> impl Iterator<Item = (&'static str, &'static str)> {
    // `false` is equivalent to an absent value.
    let additional = !matches!(props.additional, None | Some(Additional::Allowed(false)));
    let members = [
        (!props.ty.is_empty(), "type", EMPTY),
        (additional, "additionalProperties", UNDEFINED),
        (props.default.is_some(), "default", UNDEFINED),
        (!props.title.is_empty(), "title", EMPTY),
        (!props.description.is_empty(), "description", EMPTY),
        (props.nullable, "nullable", FALSE),
        (props.preserves_unknown(), "x-kubernetes-preserve-unknown-fields", FALSE),
        (props.embedded, "x-kubernetes-embedded-resource", FALSE),
        (props.int_or_string, "x-kubernetes-int-or-string", FALSE),
        (!props.list_keys.is_empty(), "x-kubernetes-list-map-keys", EMPTY),
        (props.list_type.is_some(), "x-kubernetes-list-type", UNDEFINED),
        (props.map_type.is_some(), "x-kubernetes-map-type", UNDEFINED),
        (!props.rules.is_empty(), "x-kubernetes-validations", EMPTY),
    ];
    members.into_iter().filter(|(is_present, ..)| *is_present).map(|(_, name, detail)| (name, detail))
}
