//! Removal of the fields of a set from an object.

use serde_json::{Map as Json, Value};

use super::item;
use super::reading::ReadMode;
use super::shape::{List, Map, Relation, Shape, TypeRef};
use crate::fields::{FieldSet, PathElement};
use crate::model::TypeSet;

/// Returns the object without the fields of the set.
pub(super) fn remove_fields(
    types: &TypeSet,
    root: Map<'_>,
    object: &Json<String, Value>,
    removed: &FieldSet,
) -> Json<String, Value> {
    remove_from_map(types, &root, object, removed)
}

/// Removes the fields below a value. Returns null if the value becomes empty.
fn remove_below(types: &TypeSet, ty: TypeRef<'_>, value: &Value, removed: &FieldSet) -> Value {
    match (ty.shape(types), value) {
        (Shape::Map(shape) | Shape::Deduced(shape), Value::Object(object)) if !shape.atomic => {
            or_null(remove_from_map(types, &shape, object, removed))
        }
        (Shape::List(shape), Value::Array(items)) if !matches!(shape.relation, Relation::Atomic) => {
            let remaining = remove_from_list(types, &shape, items, removed);
            if remaining.is_empty() { Value::Null } else { Value::Array(remaining) }
        }
        (_, Value::Object(_) | Value::Array(_)) => Value::Null,
        (_, scalar) => scalar.clone(),
    }
}

fn or_null(map: Json<String, Value>) -> Value {
    if map.is_empty() { Value::Null } else { Value::Object(map) }
}

fn remove_from_map(
    types: &TypeSet,
    shape: &Map<'_>,
    object: &Json<String, Value>,
    removed: &FieldSet,
) -> Json<String, Value> {
    let remaining = object.iter().filter_map(|(key, value)| match removed.node(&PathElement::field(key)) {
        None => Some((key.clone(), value.clone())),
        Some(node) if node.member => None,
        Some(node) => {
            let ty = shape.entry(key).0.unwrap_or(TypeRef::Deduced);
            Some((key.clone(), remove_below(types, ty, value, &node.children)))
        }
    });
    remaining.collect()
}

fn remove_from_list(types: &TypeSet, shape: &List<'_>, items: &[Value], removed: &FieldSet) -> Vec<Value> {
    let remaining = items.iter().filter_map(|value| {
        let element = item::path_element(types, shape, value, ReadMode::Raw).ok();
        match element.and_then(|element| removed.node(&element)) {
            None => Some(value.clone()),
            Some(node) if node.member => None,
            // An element remains when all of its fields are removed: its keys may have defaults.
            Some(node) => match remove_below(types, shape.element_type, value, &node.children) {
                Value::Null if value.is_object() => Some(Value::Object(Json::new())),
                remaining => Some(remaining),
            },
        }
    });
    remaining.collect()
}
