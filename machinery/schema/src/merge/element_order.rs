//! `$setElementOrder`: the directive that merges a list and orders its elements.

use portico_machinery::object::{GoValue, cut};
use serde_json::Value;

use super::container::{Container, missing_merge_key, not_a_list};
use super::directive::{Json, Result, malformed_error, refused_error, strip_directives};
use super::lists::{check_elements, identities, identity, order_elements};
use crate::model::Field;

/// Prefix of these directives; a slash and the name of the field follow.
pub(super) const PREFIX: &str = "$setElementOrder";

/// Function that merges two lists of a field.
pub(super) type MergeLists<'m> = &'m dyn Fn(&Field, Vec<Value>, Vec<Value>) -> Result<Vec<Value>>;

/// Merges and orders the lists that directives name. Removes the directives and the merged lists from the patch.
pub(super) fn apply(
    container: Container<'_>,
    original: &mut Json,
    patch: &mut Json,
    merge: MergeLists<'_>,
) -> Result<()> {
    if !patch.keys().any(|key| key.starts_with(PREFIX)) {
        return Ok(());
    }
    let mut directives = Vec::new();
    patch.retain(|key, value| {
        let is_directive = key.starts_with(PREFIX);
        if is_directive {
            directives.push((key.clone(), value.take()));
        }
        !is_directive
    });
    for (key, order) in directives {
        let Value::Array(order) = order else { return Err(not_a_list(&order)) };
        let Some(name) = key.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('/')) else {
            return Err(malformed_error("invalid patch format of setElementOrder list".to_owned()));
        };
        let old = original.get_mut(name).map(take_list).transpose()?;
        let new = patch.get_mut(name).map(take_list).transpose()?;
        let field = container.field(name)?;
        check_order(field, new.as_deref().unwrap_or_default(), &order)?;
        let merges = new.is_some();
        if let Some(list) = merge_in_order(field, old, new, &order, merge)? {
            original.insert(name.to_owned(), Value::Array(list));
            if merges {
                patch.shift_remove(name);
            }
        }
    }
    Ok(())
}

fn take_list(value: &mut Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(list) => Ok(std::mem::take(list)),
        other => Err(not_a_list(other)),
    }
}

/// Merges and orders both lists. Returns `None` if neither exists.
fn merge_in_order(
    field: &Field,
    old: Option<Vec<Value>>,
    new: Option<Vec<Value>>,
    order: &[Value],
    merge: MergeLists<'_>,
) -> Result<Option<Vec<Value>>> {
    let server = identities(field, old.as_deref().unwrap_or_default());
    let order = identities(field, order);
    let (has_elements, is_keyed) = {
        let (old, new) = (old.as_deref().unwrap_or_default(), new.as_deref().unwrap_or_default());
        (!old.is_empty() || !new.is_empty(), check_elements(old, new)?)
    };
    let merged = match (old, new) {
        (None, None) => return Ok(None),
        (Some(old), None) => old,
        (None, Some(new)) => new.into_iter().filter_map(strip_directives).collect(),
        (Some(old), Some(new)) => merge(field, old, new)?,
    };
    if !has_elements {
        return Err(refused_error("no elements in any of the given slices".to_owned()));
    }
    if let (true, Some(key)) = (is_keyed, &field.merge_key)
        && let Some(Value::Object(keyless)) = merged.iter().find(|element| element.get(&**key).is_none())
    {
        return Err(missing_merge_key(keyless, key));
    }
    Ok(Some(order_elements(field, merged, &order, &server)))
}

/// Checks that the order lists the elements of the patch in the same order.
fn check_order(field: &Field, new: &[Value], order: &[Value]) -> Result<()> {
    if new.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut names = order.iter();
    for element in new.iter().filter(|element| element.get("$patch").is_none()) {
        let element_identity = identity(field, element);
        if !names.any(|name| identity(field, name) == element_identity) {
            let show = |list: &[Value]| cut(GoValue(&Value::Array(list.to_vec())).to_string());
            let (new, order) = (show(new), show(order));
            return Err(refused_error(format!(
                "The order in patch list:\n{new}\n doesn't match {PREFIX} list:\n{order}\n"
            )));
        }
    }
    Ok(())
}
