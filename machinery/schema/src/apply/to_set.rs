//! Fields that an applied configuration contains: all leaves, and elements of lists.

use std::collections::BTreeMap;

use serde_json::{Map as Json, Value};

use super::item;
use super::reading::ReadMode;
use super::shape::{List, Map, Relation, Shape, TypeRef};
use crate::fields::{FieldSet, PathElement, SetNode};
use crate::model::TypeSet;

/// Returns the field set of a checked object.
pub(super) fn set_of_object(types: &TypeSet, root: Map<'_>, object: &Json<String, Value>) -> FieldSet {
    set_of_map(types, &root, object)
}

/// Returns true if a value is a member of the set, and the members below it.
fn set_of_value(types: &TypeSet, ty: TypeRef<'_>, value: &Value) -> (bool, FieldSet) {
    let children = match (ty.shape(types), value) {
        (Shape::Map(shape), Value::Object(object)) if !shape.atomic => set_of_map(types, &shape, object),
        (Shape::Map(shape), Value::Null) if !shape.atomic => FieldSet::default(),
        (Shape::List(shape), Value::Array(items)) if !matches!(shape.relation, Relation::Atomic) => {
            set_of_list(types, &shape, items)
        }
        (Shape::List(shape), Value::Null) if !matches!(shape.relation, Relation::Atomic) => {
            FieldSet::default()
        }
        (Shape::Deduced(shape), Value::Object(object)) if !shape.atomic => set_of_map(types, &shape, object),
        _ => return (true, FieldSet::default()),
    };
    (false, children)
}

fn set_of_map(types: &TypeSet, shape: &Map<'_>, object: &Json<String, Value>) -> FieldSet {
    let nodes = object.iter().map(|(key, value)| {
        let (ty, declared) = shape.entry(key);
        let (leaf, children) = set_of_value(types, ty.unwrap_or(TypeRef::Deduced), value);
        let empty = value.is_null() || value.as_object().is_some_and(Json::is_empty);
        SetNode { element: PathElement::field(key), member: leaf || empty || !declared, children }
    });
    FieldSet::from_nodes(nodes.collect())
}

/// Returns the set of list elements: unique elements with the members below them, duplicates without.
fn set_of_list(types: &TypeSet, shape: &List<'_>, items: &[Value]) -> FieldSet {
    let mut found: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
    for item in items {
        if let Ok(element) = item::path_element(types, shape, item, ReadMode::Raw) {
            found.entry(element).or_default().push(item);
        }
    }
    let nodes = found.into_iter().map(|(element, items)| {
        let children = match items.as_slice() {
            [item] => set_of_value(types, shape.element_type, item).1,
            _ => FieldSet::default(),
        };
        SetNode { element, member: true, children }
    });
    FieldSet::from_nodes(nodes.collect())
}
