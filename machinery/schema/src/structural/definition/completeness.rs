//! Fields that the root's logical operators validate must also be in the skeleton (the schema without logical operators). As
//! upstream, logical operators of nested nodes are not checked.

use serde_json::Value;

use super::errors::Errors;
use super::props::Props;
use crate::structural::location::Location;

/// Locations in the skeleton and in the branch that validates the same field.
#[derive(Clone, Copy)]
struct Locations<'a> {
    skeleton: &'a Location<'a>,
    validated: &'a Location<'a>,
}

pub(super) fn validate(schema: &Value, location: &Location<'_>, errors: &mut Errors) {
    logical_operators(
        &Props::of(schema),
        Some(schema),
        Locations { skeleton: location, validated: location },
        errors,
    );
}

fn logical_operators(
    validate: &Props<'_>,
    skeleton: Option<&Value>,
    places: Locations<'_>,
    errors: &mut Errors,
) {
    let validate_at = |validated: &Location<'_>, schema: &Value, errors: &mut Errors| {
        nested_value(schema, skeleton, Locations { skeleton: places.skeleton, validated }, errors);
    };
    if let Some(schema) = validate.not {
        validate_at(&places.validated.field("not"), schema, errors);
    }
    for (name, schemas) in
        [("allOf", validate.all_of), ("anyOf", validate.any_of), ("oneOf", validate.one_of)]
    {
        let field_location = places.validated.field(name);
        for (index, schema) in schemas.iter().enumerate() {
            validate_at(&field_location.index(index), schema, errors);
        }
    }
}

fn nested_value(validate: &Value, skeleton: Option<&Value>, places: Locations<'_>, errors: &mut Errors) {
    let Some(structure) = skeleton.map(Props::of) else { return report_missing(places, errors) };
    let validate = Props::of(validate);
    logical_operators(&validate, skeleton, places, errors);
    if let Some(item) = validate.item() {
        let (skeleton, validated) = (places.skeleton.field("items"), places.validated.field("items"));
        nested_value(
            item,
            structure.item(),
            Locations { skeleton: &skeleton, validated: &validated },
            errors,
        );
    }
    let (skeleton, validated) = (places.skeleton.field("properties"), places.validated.field("properties"));
    for (name, schema) in validate.properties() {
        let places = Locations { skeleton: &skeleton.key(name), validated: &validated.key(name) };
        nested_value(schema, structure.property(name), places, errors);
    }
}

fn report_missing(places: Locations<'_>, errors: &mut Errors) {
    let text = format!("because it is defined in {}", places.validated.path());
    places.skeleton.required(&text, errors);
}
