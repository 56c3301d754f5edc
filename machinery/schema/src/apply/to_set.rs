//! Fields that an applied configuration contains: all leaves, and elements of lists.

use std::collections::BTreeMap;

use serde_json::{Map as Json, Value};

use super::item;
use super::reading::Reading;
use super::shape::{List, Map, Relation, Shape, TypeRef};
use crate::fields::{Node, PathElement, Set};
use crate::model::TypeSet;

/// Returns the field set of a checked object.
pub(super) fn object(types: &TypeSet, root: Map<'_>, object: &Json<String, Value>) -> Set {
    map(types, &root, object)
}

/// Returns true if a value is a member of the set, and the members below it.
fn value(types: &TypeSet, ty: TypeRef<'_>, value: &Value) -> (bool, Set) {
    let below = match (ty.shape(types), value) {
        (Shape::Map(shape), Value::Object(object)) if !shape.atomic => map(types, &shape, object),
        (Shape::Map(shape), Value::Null) if !shape.atomic => Set::default(),
        (Shape::List(shape), Value::Array(items)) if !matches!(shape.relation, Relation::Atomic) => {
            list(types, &shape, items)
        }
        (Shape::List(shape), Value::Null) if !matches!(shape.relation, Relation::Atomic) => Set::default(),
        (Shape::Deduced(shape), Value::Object(object)) if !shape.atomic => map(types, &shape, object),
        _ => return (true, Set::default()),
    };
    (false, below)
}

fn map(types: &TypeSet, shape: &Map<'_>, object: &Json<String, Value>) -> Set {
    let nodes = object.iter().map(|(key, held)| {
        let (ty, declared) = shape.entry(key);
        let (leaf, children) = value(types, ty.unwrap_or(TypeRef::Deduced), held);
        let empty = held.is_null() || held.as_object().is_some_and(Json::is_empty);
        Node { element: PathElement::field(key), member: leaf || empty || !declared, children }
    });
    Set::from_nodes(nodes.collect())
}

/// Returns the set of list elements: unique elements with the members below them, duplicates without.
fn list(types: &TypeSet, shape: &List<'_>, items: &[Value]) -> Set {
    let mut found: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
    for item in items {
        if let Ok(element) = item::element(types, shape, item, Reading::Raw) {
            found.entry(element).or_default().push(item);
        }
    }
    let nodes = found.into_iter().map(|(element, items)| {
        let children = match items.as_slice() {
            [item] => value(types, shape.of, item).1,
            _ => Set::default(),
        };
        Node { element, member: true, children }
    });
    Set::from_nodes(nodes.collect())
}
