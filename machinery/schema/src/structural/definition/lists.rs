//! List and map types: item types of sets, item types of maps, and the keys that identify items.

use std::collections::HashSet;

use serde_json::Value;

use super::errors::Errors;
use super::internal;
use super::props::{Items, Props};
use super::terms::Terms;
use crate::structural::at::At;

pub(super) fn validate(props: &Props<'_>, at: &At<'_>, terms: &Terms, errors: &mut Errors) {
    map_type(props, at, errors);
    list_type(props, at, terms, errors);
    keys(props, at, errors);
    if props.list_type == Some("map") {
        map_list(props, at, errors);
    }
    if terms.settled_keys {
        settled_keys(props, at, errors);
    }
}

fn map_type(props: &Props<'_>, at: &At<'_>, errors: &mut Errors) {
    let Some(map_type) = props.map_type else { return };
    if props.ty != "object" {
        at.field("type").must_be(props.ty, "must be object if x-kubernetes-map-type is specified", errors);
    }
    if !matches!(map_type, "atomic" | "granular") {
        at.field("x-kubernetes-map-type").not_supported(map_type, &["atomic", "granular"], errors);
    }
}

fn list_type(props: &Props<'_>, at: &At<'_>, terms: &Terms, errors: &mut Errors) {
    let Some(list_type) = props.list_type else { return };
    if props.ty != "array" {
        at.field("type").must_be(props.ty, "must be array if x-kubernetes-list-type is specified", errors);
    } else if terms.atomic_sets {
        atomic_items(props, at, errors);
    }
    if !matches!(list_type, "atomic" | "set" | "map") {
        at.field("x-kubernetes-list-type").not_supported(list_type, &["atomic", "set", "map"], errors);
    }
}

/// True if the node is a set whose items are lists or objects that are not atomic.
pub(super) fn has_loose_items(props: &Props<'_>) -> bool {
    loose_items(props).is_some()
}

/// Returns the member that makes the items non-atomic, with the items.
fn loose_items<'a>(props: &Props<'a>) -> Option<(&'static str, Props<'a>)> {
    let item = props.item().filter(|_| props.list_type == Some("set")).map(Props::of)?;
    match item.ty {
        "array" if item.list_type.is_some_and(|ty| ty != "atomic") => Some(("x-kubernetes-list-type", item)),
        "object" if item.map_type != Some("atomic") => Some(("x-kubernetes-map-type", item)),
        _ => None,
    }
}

fn atomic_items(props: &Props<'_>, at: &At<'_>, errors: &mut Errors) {
    let Some((member, item)) = loose_items(props) else { return };
    // Upstream prints the list type in either case.
    let shown = item.list_type.map_or_else(|| "null".to_owned(), |ty| format!("{ty:?}"));
    let text = "must be atomic as item of a list with x-kubernetes-list-type=set";
    at.field("items").field(member).invalid_printed(&shown, text, errors);
}

fn keys(props: &Props<'_>, at: &At<'_>, errors: &mut Errors) {
    if props.list_keys.is_empty() {
        return;
    }
    let (here, text) =
        (at.field("x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty");
    match props.list_type {
        None => here.required(text, errors),
        Some("map") => {}
        Some(other) => here.invalid(other, text, errors),
    }
}

fn map_list(props: &Props<'_>, at: &At<'_>, errors: &mut Errors) {
    if props.list_keys.is_empty() {
        let text = "must not be empty if x-kubernetes-list-type is map";
        at.field("x-kubernetes-list-map-keys").required(text, errors);
    }
    let here = at.field("items");
    match props.items {
        None => here.required("must have a schema if x-kubernetes-list-type is map", errors),
        Some(Items::Many(items)) => {
            let text = "must only have a single schema if x-kubernetes-list-type is map";
            here.invalid_printed(&internal::items_as_held(items), text, errors);
        }
        Some(Items::One(item)) => {
            let item = Props::of(item);
            if item.ty == "object" {
                key_types(props, &item, at, errors);
            } else {
                let text = "must be object if parent array's x-kubernetes-list-type is map";
                here.field("type").invalid(item.ty, text, errors);
            }
        }
    }
}

fn key_types(props: &Props<'_>, item: &Props<'_>, at: &At<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    let printed = || Value::from(props.list_keys).to_string();
    for key in props.list_keys.iter().filter_map(Value::as_str) {
        match item.property(key).map(|schema| Props::of(schema).ty) {
            Some("array" | "object") => {
                let here = at.field("items");
                let (here, text) = (
                    here.field("properties"),
                    "must be a scalar type if parent array's x-kubernetes-list-type is map",
                );
                // Upstream prints the type of the item.
                here.key(key).field("type").invalid(item.ty, text, errors);
            }
            Some(_) => {}
            None => {
                let text = "entries must all be names of item properties";
                at.field("x-kubernetes-list-map-keys").invalid_printed(&printed(), text, errors);
            }
        }
        if !seen.insert(key) {
            let text = "must not contain duplicate entries";
            at.field("x-kubernetes-list-map-keys").invalid_printed(&printed(), text, errors);
        }
    }
}

/// Checks that items are not nullable and that keys are required or have a default.
pub(super) fn settled_keys(props: &Props<'_>, at: &At<'_>, errors: &mut Errors) {
    let Some(list_type @ ("set" | "map")) = props.list_type else { return };
    let Some(item) = props.item().map(Props::of) else { return };
    let here = at.field("items");
    if item.nullable {
        let text = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        here.field("nullable").forbidden(&text, errors);
    }
    if list_type == "set" {
        return;
    }
    let here = here.field("properties");
    for key in props.list_keys.iter().filter_map(Value::as_str) {
        let Some(schema) = item.property(key).map(Props::of) else { continue };
        let here = here.key(key);
        if schema.default.is_none() && !item.required.iter().any(|name| name == key) {
            let text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            here.field("default").required(text, errors);
        }
        if schema.nullable {
            let text = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            here.field("nullable").forbidden(text, errors);
        }
    }
}
