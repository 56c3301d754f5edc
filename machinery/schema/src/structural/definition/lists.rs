//! List and map types: item types of sets, item types of maps, and the keys that identify items.

use std::collections::HashSet;

use serde_json::Value;

use super::errors::Errors;
use super::internal_format;
use super::props::{Items, Props};
use super::requirements::Requirements;
use crate::structural::location::Location;

pub(super) fn validate(
    props: &Props<'_>,
    location: &Location<'_>,
    requirements: &Requirements,
    errors: &mut Errors,
) {
    map_type(props, location, errors);
    list_type(props, location, requirements, errors);
    keys(props, location, errors);
    if props.list_type == Some("map") {
        map_list(props, location, errors);
    }
    if requirements.strict_keys {
        strict_keys(props, location, errors);
    }
}

fn map_type(props: &Props<'_>, location: &Location<'_>, errors: &mut Errors) {
    let Some(map_type) = props.map_type else { return };
    if props.ty != "object" {
        location.field("type").must_be(
            props.ty,
            "must be object if x-kubernetes-map-type is specified",
            errors,
        );
    }
    if !matches!(map_type, "atomic" | "granular") {
        location.field("x-kubernetes-map-type").not_supported(map_type, &["atomic", "granular"], errors);
    }
}

fn list_type(props: &Props<'_>, location: &Location<'_>, requirements: &Requirements, errors: &mut Errors) {
    let Some(list_type) = props.list_type else { return };
    if props.ty != "array" {
        location.field("type").must_be(
            props.ty,
            "must be array if x-kubernetes-list-type is specified",
            errors,
        );
    } else if requirements.atomic_sets {
        atomic_items(props, location, errors);
    }
    if !matches!(list_type, "atomic" | "set" | "map") {
        location.field("x-kubernetes-list-type").not_supported(list_type, &["atomic", "set", "map"], errors);
    }
}

/// True if the node is a set whose items are lists or objects that are not atomic.
pub(super) fn has_non_atomic_items(props: &Props<'_>) -> bool {
    non_atomic_items(props).is_some()
}

/// Returns the member that makes the items non-atomic, with the items.
fn non_atomic_items<'a>(props: &Props<'a>) -> Option<(&'static str, Props<'a>)> {
    let item = props.item().filter(|_| props.list_type == Some("set")).map(Props::of)?;
    match item.ty {
        "array" if item.list_type.is_some_and(|ty| ty != "atomic") => Some(("x-kubernetes-list-type", item)),
        "object" if item.map_type != Some("atomic") => Some(("x-kubernetes-map-type", item)),
        _ => None,
    }
}

fn atomic_items(props: &Props<'_>, location: &Location<'_>, errors: &mut Errors) {
    let Some((member, item)) = non_atomic_items(props) else { return };
    // Upstream prints the list type in either case.
    let printed_type = item.list_type.map_or_else(|| "null".to_owned(), |ty| format!("{ty:?}"));
    let text = "must be atomic as item of a list with x-kubernetes-list-type=set";
    location.field("items").field(member).invalid_printed(&printed_type, text, errors);
}

fn keys(props: &Props<'_>, location: &Location<'_>, errors: &mut Errors) {
    if props.list_keys.is_empty() {
        return;
    }
    let (field_location, text) =
        (location.field("x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty");
    match props.list_type {
        None => field_location.required(text, errors),
        Some("map") => {}
        Some(other) => field_location.invalid(other, text, errors),
    }
}

fn map_list(props: &Props<'_>, location: &Location<'_>, errors: &mut Errors) {
    if props.list_keys.is_empty() {
        let text = "must not be empty if x-kubernetes-list-type is map";
        location.field("x-kubernetes-list-map-keys").required(text, errors);
    }
    let field_location = location.field("items");
    match props.items {
        None => field_location.required("must have a schema if x-kubernetes-list-type is map", errors),
        Some(Items::Many(items)) => {
            let text = "must only have a single schema if x-kubernetes-list-type is map";
            field_location.invalid_printed(&internal_format::format_items(items), text, errors);
        }
        Some(Items::One(item)) => {
            let item = Props::of(item);
            if item.ty == "object" {
                key_types(props, &item, location, errors);
            } else {
                let text = "must be object if parent array's x-kubernetes-list-type is map";
                field_location.field("type").invalid(item.ty, text, errors);
            }
        }
    }
}

fn key_types(props: &Props<'_>, item: &Props<'_>, location: &Location<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    let printed = || Value::from(props.list_keys).to_string();
    for key in props.list_keys.iter().filter_map(Value::as_str) {
        match item.property(key).map(|schema| Props::of(schema).ty) {
            Some("array" | "object") => {
                let field_location = location.field("items");
                let (field_location, text) = (
                    field_location.field("properties"),
                    "must be a scalar type if parent array's x-kubernetes-list-type is map",
                );
                // Upstream prints the type of the item.
                field_location.key(key).field("type").invalid(item.ty, text, errors);
            }
            Some(_) => {}
            None => {
                let text = "entries must all be names of item properties";
                location.field("x-kubernetes-list-map-keys").invalid_printed(&printed(), text, errors);
            }
        }
        if !seen.insert(key) {
            let text = "must not contain duplicate entries";
            location.field("x-kubernetes-list-map-keys").invalid_printed(&printed(), text, errors);
        }
    }
}

/// Checks that items are not nullable and that keys are required or have a default.
pub(super) fn strict_keys(props: &Props<'_>, location: &Location<'_>, errors: &mut Errors) {
    let Some(list_type @ ("set" | "map")) = props.list_type else { return };
    let Some(item) = props.item().map(Props::of) else { return };
    let field_location = location.field("items");
    if item.nullable {
        let text = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        field_location.field("nullable").forbidden(&text, errors);
    }
    if list_type == "set" {
        return;
    }
    let field_location = field_location.field("properties");
    for key in props.list_keys.iter().filter_map(Value::as_str) {
        let Some(schema) = item.property(key).map(Props::of) else { continue };
        let field_location = field_location.key(key);
        if schema.default.is_none() && !item.required.iter().any(|name| name == key) {
            let text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            field_location.field("default").required(text, errors);
        }
        if schema.nullable {
            let text = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            field_location.field("nullable").forbidden(text, errors);
        }
    }
}
