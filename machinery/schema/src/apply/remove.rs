//! Removal of the fields of a set from an object.

use serde_json::{Map as Json, Value};

use super::item;
use super::reading::Reading;
use super::shape::{List, Map, Relation, Shape, TypeRef};
use crate::fields::{PathElement, Set};
use crate::model::TypeSet;

/// Returns the object without the fields of the set.
pub(super) fn object(
    types: &TypeSet,
    root: Map<'_>,
    object: &Json<String, Value>,
    gone: &Set,
) -> Json<String, Value> {
    map(types, &root, object, gone)
}

/// Removes the fields below a value. Returns null if the value becomes empty.
fn value(types: &TypeSet, ty: TypeRef<'_>, held: &Value, gone: &Set) -> Value {
    match (ty.shape(types), held) {
        (Shape::Map(shape) | Shape::Deduced(shape), Value::Object(object)) if !shape.atomic => {
            or_null(map(types, &shape, object, gone))
        }
        (Shape::List(shape), Value::Array(items)) if !matches!(shape.relation, Relation::Atomic) => {
            let left = list(types, &shape, items, gone);
            if left.is_empty() { Value::Null } else { Value::Array(left) }
        }
        (_, Value::Object(_) | Value::Array(_)) => Value::Null,
        (_, scalar) => scalar.clone(),
    }
}

fn or_null(map: Json<String, Value>) -> Value {
    if map.is_empty() { Value::Null } else { Value::Object(map) }
}

fn map(types: &TypeSet, shape: &Map<'_>, object: &Json<String, Value>, gone: &Set) -> Json<String, Value> {
    let left = object.iter().filter_map(|(key, held)| match gone.node(&PathElement::field(key)) {
        None => Some((key.clone(), held.clone())),
        Some(node) if node.member => None,
        Some(node) => {
            let ty = shape.entry(key).0.unwrap_or(TypeRef::Deduced);
            Some((key.clone(), value(types, ty, held, &node.children)))
        }
    });
    left.collect()
}

fn list(types: &TypeSet, shape: &List<'_>, items: &[Value], gone: &Set) -> Vec<Value> {
    let left = items.iter().filter_map(|held| {
        let element = item::element(types, shape, held, Reading::Raw).ok();
        match element.and_then(|element| gone.node(&element)) {
            None => Some(held.clone()),
            Some(node) if node.member => None,
            // An element remains when all of its fields are removed: its keys may have defaults.
            Some(node) => match value(types, shape.of, held, &node.children) {
                Value::Null if held.is_object() => Some(Value::Object(Json::new())),
                left => Some(left),
            },
        }
    });
    left.collect()
}
