//! Identity of list items.

use serde_json::Value;

use super::reading::Reading;
use super::shape::{List, Relation, Shape};
use super::view::emitted;
use crate::fields::PathElement;
use crate::model::TypeSet;

/// Returns the path element of an item in a list that is a set or a map, or the reason why it has none.
pub(super) fn element(
    types: &TypeSet,
    list: &List<'_>,
    item: &Value,
    reading: Reading,
) -> Result<PathElement, String> {
    match list.relation {
        Relation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        Relation::Set => scalar(item),
        Relation::Map(keys) => keyed(types, list, keys, item, reading),
    }
}

fn scalar(item: &Value) -> Result<PathElement, String> {
    let why = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        scalar => return Ok(PathElement::Value(scalar.clone())),
    };
    Err(why.to_owned())
}

fn keyed(
    types: &TypeSet,
    list: &List<'_>,
    keys: &[Box<str>],
    item: &Value,
    reading: Reading,
) -> Result<PathElement, String> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let of = match list.of.shape(types) {
        Shape::Map(of) | Shape::Deduced(of) => Some(of),
        _ => None,
    };
    // A key that is absent and has no default is omitted: the element differs from one that has the key.
    let found = keys.iter().filter_map(|key| {
        let held = map.get(&**key);
        let field = of.and_then(|of| of.structure()?.field(key));
        let printed = match field {
            Some(field) if reading == Reading::Typed => emitted(types, field, held),
            _ => held,
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
