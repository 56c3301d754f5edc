//! Identity of list items.

use serde_json::Value;

use super::reading::ReadMode;
use super::shape::{List, Relation, Shape};
use super::view::emitted_value;
use crate::fields::PathElement;
use crate::model::TypeSet;

/// Returns the path element of an item in a list that is a set or a map, or the reason why it has none.
pub(super) fn path_element(
    types: &TypeSet,
    list: &List<'_>,
    item: &Value,
    reading: ReadMode,
) -> Result<PathElement, String> {
    match list.relation {
        Relation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        Relation::Set => value_element(item),
        Relation::Map(keys) => key_element(types, list, keys, item, reading),
    }
}

fn value_element(item: &Value) -> Result<PathElement, String> {
    let reason = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        scalar => return Ok(PathElement::Value(scalar.clone())),
    };
    Err(reason.to_owned())
}

fn key_element(
    types: &TypeSet,
    list: &List<'_>,
    keys: &[Box<str>],
    item: &Value,
    reading: ReadMode,
) -> Result<PathElement, String> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let of = match list.element_type.shape(types) {
        Shape::Map(of) | Shape::Deduced(of) => Some(of),
        _ => None,
    };
    // A key that is absent and has no default is omitted: the element differs from one that has the key.
    let found = keys.iter().filter_map(|key| {
        let value = map.get(&**key);
        let field = of.and_then(|of| of.struct_type()?.field(key));
        let printed = match field {
            Some(field) if reading == ReadMode::Typed => emitted_value(types, field, value),
            _ => value,
        };
        let value = printed.or_else(|| of?.default_of(key))?;
        Some((key.clone(), value.clone()))
    });
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return Err(format!(
            "associative list with keys has an element that omits all key fields {keys:?} \
             (and doesn't have default values for any key fields)"
        ));
    }
    Ok(PathElement::key(found))
}
