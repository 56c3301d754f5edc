//! Whether a configuration fits its type: no unknown fields, elements with keys, none twice.

use std::collections::BTreeSet;

use portico_machinery::object::go_type;
use serde_json::{Map as Json, Value};

use super::compare::{Reading, entries, items};
use super::shape::{List, Map, Relation, Shape, TypeRef};
use super::{Misfit, item};
use crate::model::{FieldType, TypeSet};

type Result<T, E = Misfit> = std::result::Result<T, E>;

/// The first thing that does not fit.
pub(super) fn object(types: &TypeSet, root: Map<'_>, object: &Json<String, Value>) -> Result<()> {
    map(types, &root, object)
}

fn value(types: &TypeSet, ty: TypeRef<'_>, held: &Value) -> Result<()> {
    match ty.shape(types) {
        Shape::Map(shape) => entries(Some(held))?.map_or(Ok(()), |object| map(types, &shape, object)),
        Shape::List(shape) => list(types, &shape, items(Some(held))?),
        Shape::Scalar(ty) => scalar(ty, held),
        Shape::Deduced(shape) => held.as_object().map_or(Ok(()), |object| map(types, &shape, object)),
        Shape::Untyped => Ok(()),
    }
}

fn map(types: &TypeSet, shape: &Map<'_>, object: &Json<String, Value>) -> Result<()> {
    object.iter().try_for_each(|(key, held)| {
        let at = || format!(".{key}");
        let ty = shape.entry(key).0.ok_or_else(|| Misfit::at(&at(), "field not declared in schema"))?;
        value(types, ty, held).map_err(|e| e.below(&at()))
    })
}

fn list(types: &TypeSet, shape: &List<'_>, items: &[Value]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for (i, held) in items.iter().enumerate() {
        let step = if matches!(shape.relation, Relation::Atomic) {
            format!("[{i}]")
        } else {
            let element = item::element(types, shape, held, Reading::Raw)
                .map_err(|why| Misfit::at("", &format!("element {i}: {why}")))?;
            let step = element.to_string();
            if !seen.insert(element) {
                return Err(Misfit::at("", &format!("duplicate entries for key {step}")));
            }
            step
        };
        value(types, shape.of, held).map_err(|e| e.below(&step))?;
    }
    Ok(())
}

fn scalar(ty: &FieldType, held: &Value) -> Result<()> {
    let (fits, expected) = match (ty, held) {
        (_, Value::Null) => return Ok(()),
        (FieldType::String | FieldType::Bytes, held) => (held.is_string(), "expected string"),
        (FieldType::Bool, held) => (held.is_boolean(), "expected boolean"),
        (FieldType::Int32 | FieldType::Int64 | FieldType::Number, held) => {
            let text = format!("expected numeric (int or float), got {}", go_type(held));
            return if held.is_number() { Ok(()) } else { Err(Misfit::at("", &text)) };
        }
        (_, held) => (!held.is_object() && !held.is_array(), "expected any scalar"),
    };
    if fits { Ok(()) } else { Err(Misfit::at("", &format!("{expected}, got {held}"))) }
}
