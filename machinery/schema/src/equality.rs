//! Comparison of two states of an object: an update that changes nothing is not stored.

use portico_machinery::{Object, Quantity};
use serde_json::Value;

use crate::model::{FieldType, TypeSet};
use crate::typed::Typed;

/// True if both objects have the same content, except for `metadata.resourceVersion` and the times in
/// `metadata.managedFields`. Key order is ignored. Both objects must be normalized.
#[must_use]
pub fn same_content(new: &Object, old: &Object) -> bool {
    equal_except(new.map(), old.map(), &["metadata"])
        && match (new.map().get("metadata"), old.map().get("metadata")) {
            (Some(Value::Object(a)), Some(Value::Object(b))) => {
                equal_except(a, b, &["resourceVersion", "managedFields"])
                    && same_managed_fields(a.get("managedFields"), b.get("managedFields"))
            }
            (a, b) => a == b,
        }
}

type Map = serde_json::Map<String, Value>;

fn equal_except(a: &Map, b: &Map, except: &[&str]) -> bool {
    let count = |m: &Map| m.len() - except.iter().filter(|k| m.contains_key(**k)).count();
    count(a) == count(b)
        && a.iter().filter(|(k, _)| !except.contains(&k.as_str())).all(|(k, v)| b.get(k) == Some(v))
}

/// True if both objects have equal values at a path. Quantities are compared by amount, not by spelling
/// (`equality.Semantic`).
pub(crate) fn is_semantically_equal(schema: &Typed, path: &[&str], new: &Object, old: &Object) -> bool {
    let types = schema.types();
    let Some((first, rest)) = path.split_first() else { return false };
    let Some(field) = schema.root().field(first) else { return false };
    let mut ty = &field.ty;
    for name in rest {
        let FieldType::Ref(id) = types.resolve(ty) else { return false };
        let Some(field) = types.get(*id).field(name) else { return false };
        ty = &field.ty;
    }
    let value_at =
        |object| rest.iter().try_fold(Object::map(object).get(*first)?, |value, name| value.get(name));
    match (value_at(new), value_at(old)) {
        (Some(new), Some(old)) => same_value(types, ty, new, old),
        (new, old) => new == old,
    }
}

fn same_value(types: &TypeSet, ty: &FieldType, new: &Value, old: &Value) -> bool {
    match (types.resolve(ty), new, old) {
        (FieldType::Ref(id), Value::Object(new), Value::Object(old)) => {
            let ty = types.get(*id);
            let same = |name: &str, new: &Value, old: &Value| {
                ty.field(name).map_or(new == old, |field| same_value(types, &field.ty, new, old))
            };
            same_members(new, old, same)
        }
        (FieldType::Map(of), Value::Object(new), Value::Object(old)) => {
            same_members(new, old, |_, new, old| same_value(types, of, new, old))
        }
        (FieldType::List(of), Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| same_value(types, of, new, old))
        }
        (FieldType::Quantity, Value::String(new), Value::String(old)) => {
            new == old || matches!((new.parse::<Quantity>(), old.parse()), (Ok(new), Ok(old)) if new == old)
        }
        _ => new == old,
    }
}

fn same_members(new: &Map, old: &Map, same: impl Fn(&str, &Value, &Value) -> bool) -> bool {
    new.len() == old.len()
        && new.iter().all(|(name, new)| old.get(name).is_some_and(|old| same(name, new, old)))
}

fn same_managed_fields(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a.and_then(Value::as_array), b.and_then(Value::as_array)) {
        (Some(a), Some(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|pair| match pair {
                    (Value::Object(a), Value::Object(b)) => equal_except(a, b, &["time"]),
                    (a, b) => a == b,
                })
        }
        _ => a == b,
    }
}
