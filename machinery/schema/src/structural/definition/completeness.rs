//! Fields that the root's logical operators validate must also be in the skeleton (the schema without logical operators). As
//! upstream, logical operators of nested nodes are not checked.

use serde_json::Value;

use super::errors::Errors;
use super::props::Props;
use crate::structural::at::At;

/// Locations in the skeleton and in the branch that validates the same field.
#[derive(Clone, Copy)]
struct Places<'a> {
    skeleton: &'a At<'a>,
    validated: &'a At<'a>,
}

pub(super) fn validate(schema: &Value, at: &At<'_>, errors: &mut Errors) {
    logical_operators(&Props::of(schema), Some(schema), Places { skeleton: at, validated: at }, errors);
}

fn logical_operators(
    validate: &Props<'_>,
    skeleton: Option<&Value>,
    places: Places<'_>,
    errors: &mut Errors,
) {
    let at = |validated: &At<'_>, schema: &Value, errors: &mut Errors| {
        nested(schema, skeleton, Places { skeleton: places.skeleton, validated }, errors);
    };
    if let Some(schema) = validate.not {
        at(&places.validated.field("not"), schema, errors);
    }
    for (name, schemas) in
        [("allOf", validate.all_of), ("anyOf", validate.any_of), ("oneOf", validate.one_of)]
    {
        let here = places.validated.field(name);
        for (index, schema) in schemas.iter().enumerate() {
            at(&here.index(index), schema, errors);
        }
    }
}

fn nested(validate: &Value, skeleton: Option<&Value>, places: Places<'_>, errors: &mut Errors) {
    let Some(structure) = skeleton.map(Props::of) else { return missing(places, errors) };
    let validate = Props::of(validate);
    logical_operators(&validate, skeleton, places, errors);
    if let Some(item) = validate.item() {
        let (skeleton, validated) = (places.skeleton.field("items"), places.validated.field("items"));
        nested(item, structure.item(), Places { skeleton: &skeleton, validated: &validated }, errors);
    }
    let (skeleton, validated) = (places.skeleton.field("properties"), places.validated.field("properties"));
    for (name, schema) in validate.properties() {
        let places = Places { skeleton: &skeleton.key(name), validated: &validated.key(name) };
        nested(schema, structure.property(name), places, errors);
    }
}

fn missing(places: Places<'_>, errors: &mut Errors) {
    let text = format!("because it is defined in {}", places.validated.path());
    places.skeleton.required(&text, errors);
}
