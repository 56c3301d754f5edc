//! Merges a configuration into an object: values of the configuration win, nothing is removed, and the order of lists respects
//! both sides.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map as Json, Value};

use super::item;
use super::reading::{ReadMode, entries, items};
use super::shape::{List, Map, Relation, Shape, TypeRef};
use super::type_mismatch::TypeMismatch;
use crate::fields::PathElement;
use crate::model::TypeSet;

type Side<'v> = Option<&'v Value>;
type Result<T, E = TypeMismatch> = std::result::Result<T, E>;

/// Merges two objects.
pub(super) fn merge_objects(
    types: &TypeSet,
    root: Map<'_>,
    live: &Json<String, Value>,
    config: &Json<String, Value>,
) -> Result<Json<String, Value>> {
    merge_map(types, &root, Some(live), Some(config))
}

fn merge_value(types: &TypeSet, ty: TypeRef<'_>, live: Side<'_>, config: Side<'_>) -> Result<Option<Value>> {
    let leaf = || Ok(config.or(live).cloned());
    match ty.shape(types) {
        Shape::Map(shape) if !shape.atomic => map_value(types, &shape, live, config),
        Shape::List(shape) if !matches!(shape.relation, Relation::Atomic) => {
            let (a, b) = (items(live)?, items(config)?);
            if a.is_empty() && b.is_empty() {
                return leaf();
            }
            let merged = merge_list(types, &shape, a, b)?;
            Ok((!merged.is_empty()).then_some(Value::Array(merged)))
        }
        Shape::Deduced(shape) if !shape.atomic => match (live, config) {
            (_, Some(Value::Object(_))) => map_value(types, &shape, live.filter(|v| v.is_object()), config),
            (Some(Value::Object(_)), None | Some(Value::Null)) => map_value(types, &shape, live, None),
            _ => leaf(),
        },
        _ => leaf(),
    }
}

fn map_value(types: &TypeSet, shape: &Map<'_>, live: Side<'_>, config: Side<'_>) -> Result<Option<Value>> {
    let (a, b) = (entries(live)?, entries(config)?);
    let empty = |side: Option<&Json<String, Value>>| side.is_none_or(Json::is_empty);
    if empty(a) && empty(b) {
        return Ok(config.or(live).cloned());
    }
    let merged = merge_map(types, shape, a, b)?;
    Ok((!merged.is_empty()).then_some(Value::Object(merged)))
}

fn merge_map(
    types: &TypeSet,
    shape: &Map<'_>,
    live: Option<&Json<String, Value>>,
    config: Option<&Json<String, Value>>,
) -> Result<Json<String, Value>> {
    let mut merged = Json::new();
    let added = config.into_iter().flatten().filter(|(key, _)| !live.is_some_and(|l| l.contains_key(*key)));
    let existing = live.into_iter().flatten().map(|(key, a)| (key, Some(a), config.and_then(|c| c.get(key))));
    for (key, a, b) in existing.chain(added.map(|(key, b)| (key, None, Some(b)))) {
        let ty = shape.entry(key).0.unwrap_or(TypeRef::Deduced);
        let value = merge_value(types, ty, a, b).map_err(|e| e.prefixed(&format!(".{key}")))?;
        if let Some(value) = value {
            merged.insert(key.clone(), value);
        }
    }
    Ok(merged)
}

/// List elements by identity; `None` for duplicates.
type ElementIndex<'v> = BTreeMap<PathElement, Option<&'v Value>>;

struct ListSides<'v> {
    live: Vec<PathElement>,
    config: Vec<PathElement>,
    in_live: ElementIndex<'v>,
    in_config: ElementIndex<'v>,
}

fn index_elements<'v>(
    types: &TypeSet,
    shape: &List<'_>,
    items: &'v [Value],
    duplicates: bool,
) -> Result<(Vec<PathElement>, ElementIndex<'v>)> {
    let (mut order, mut found) = (Vec::with_capacity(items.len()), ElementIndex::new());
    for (i, item) in items.iter().enumerate() {
        let element = item::path_element(types, shape, item, ReadMode::Raw)
            .map_err(|reason| TypeMismatch::new("", &format!("element {i}: {reason}")))?;
        let again = found.contains_key(&element);
        if again && !duplicates {
            return Err(TypeMismatch::new("", &format!("duplicate entries for key {element}")));
        }
        found.insert(element.clone(), (!again).then_some(item));
        order.push(element);
    }
    Ok((order, found))
}

/// Merges two lists in one pass. Elements of both follow the order of the configuration; elements that only the object has
/// keep their position between them.
fn merge_list(types: &TypeSet, shape: &List<'_>, live: &[Value], config: &[Value]) -> Result<Vec<Value>> {
    let (config, in_config) = index_elements(types, shape, config, false)?;
    let (order, in_live) = index_elements(types, shape, live, true)?;
    let sides = ListSides { live: order, config, in_live, in_config };
    let mut shared: VecDeque<&PathElement> =
        sides.config.iter().filter(|element| sides.in_live.contains_key(*element)).collect();
    let mut merged: BTreeSet<&PathElement> = BTreeSet::new();
    let mut out = Vec::with_capacity(sides.live.len().max(sides.config.len()));
    let (mut l, mut r) = (0, 0);
    while l < sides.live.len() || r < sides.config.len() {
        if let (Some(a), Some(b)) = (sides.live.get(l), sides.config.get(r)) {
            if a == b {
                merged.insert(a);
                out.extend(sides.merge_element(types, shape, a)?);
                (l, r) = (l + 1, r + 1);
                shared.pop_front();
                continue;
            }
            if sides.in_config.contains_key(a) && shared.front().is_some_and(|next| *next != a) {
                // Shared, but the next shared element in the order of the configuration is another one.
                l += 1;
                continue;
            }
        }
        if let Some(a) = sides.live.get(l) {
            if !sides.in_config.contains_key(a) {
                out.extend(merge_value(types, shape.element_type, live.get(l), None)?);
                l += 1;
                continue;
            }
            if merged.contains(a) {
                l += 1;
            }
        }
        if let Some(b) = sides.config.get(r) {
            merged.insert(b);
            out.extend(sides.merge_element(types, shape, b)?);
            r += 1;
            if shared.front().is_some_and(|next| *next == b) {
                shared.pop_front();
            }
        }
    }
    Ok(out)
}

impl ListSides<'_> {
    /// Merges an element of both sides. An element that the object contains more than once is replaced.
    fn merge_element(
        &self,
        types: &TypeSet,
        shape: &List<'_>,
        element: &PathElement,
    ) -> Result<Option<Value>> {
        let of = |found: &ElementIndex<'_>| found.get(element).copied().flatten().cloned();
        let (a, b) = (of(&self.in_live), of(&self.in_config));
        merge_value(types, shape.element_type, a.as_ref(), b.as_ref())
            .map_err(|e| e.prefixed(&element.to_string()))
    }
}
