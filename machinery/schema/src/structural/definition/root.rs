//! Rules of the root. With a status subresource, only members that do not affect `status` are allowed.

use serde_json::Value;

use super::errors::Errors;
use super::internal_format;
use super::props::Props;
use crate::structural::location::Location;

/// Members that are allowed at the root, with the names of upstream's internal type.
const ALLOWED: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

pub(super) fn validate(
    schema: &Value,
    props: &Props<'_>,
    location: &Location<'_>,
    status: bool,
    errors: &mut Errors,
) {
    if status {
        members_with_status(schema, props, location, errors);
    }
    if props.nullable {
        location.field("nullable").forbidden("nullable cannot be true at the root", errors);
    }
}

/// Checks members in the order of upstream's type. Reports the first invalid one and stops.
fn members_with_status(schema: &Value, props: &Props<'_>, location: &Location<'_>, errors: &mut Errors) {
    for name in internal_format::members(schema) {
        if name == "Type" {
            if props.ty == "object" {
                continue;
            }
            let text = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            return location.field("type").invalid(props.ty, text, errors);
        }
        if !ALLOWED.contains(&name) {
            let allowed = ALLOWED.join(" ");
            let text = format!(
                "only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
            );
            return location.invalid_printed(&internal_format::schema(schema), &text, errors);
        }
    }
}
