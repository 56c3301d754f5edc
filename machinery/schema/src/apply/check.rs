//! Checks a configuration against its type: no unknown fields, elements with keys, no duplicates.

use std::collections::BTreeSet;

use portico_machinery::Bounded;
use portico_machinery::bounded::Weight;
use portico_machinery::object::{cut, go_type};
use serde_json::{Map as Json, Value};

use super::item;
use super::misfit::{Misfits, TypeMismatch};
use super::printed::{Pointer, Syntax};
use super::reading::{Reading, entries, items};
use super::shape::{List, Map, Relation, Shape, TypeRef};
use crate::model::{FieldType, TypeSet};

/// Maximum number of reported mismatches. Each contains its path, and together they could be far larger than the object.
/// Upstream has no limit.
const MAX_REPORTED: usize = 256;
/// Maximum bytes of reported mismatches.
const MAX_MISFIT_BYTES: usize = 256 * 1024;

/// Handling of duplicate elements in a list that is a set or a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    Refused,
    Allowed,
}

/// Returns all mismatches. The check of a map ends at an unknown field, that of a list at an element without keys.
pub(super) fn object(
    types: &TypeSet,
    root: Map<'_>,
    object: &Json<String, Value>,
    duplicates: Duplicates,
) -> Result<(), Misfits> {
    let mut check =
        Check { types, duplicates, at: String::new(), found: Bounded::new(MAX_REPORTED, MAX_MISFIT_BYTES) };
    check.map(&root, object);
    let found = check.found.into_items();
    if found.is_empty() { Ok(()) } else { Err(Misfits(found)) }
}

struct Check<'t> {
    types: &'t TypeSet,
    duplicates: Duplicates,
    at: String,
    found: Bounded<TypeMismatch>,
}

impl Weight for TypeMismatch {
    fn bytes(&self) -> usize {
        self.path.len() + self.text.len()
    }
}

impl Check<'_> {
    fn report(&mut self, text: impl Into<String>) {
        let path = &self.at;
        self.found.push_with(|| TypeMismatch { path: cut(path.clone()), text: cut(text.into()) });
    }

    fn below(&mut self, step: &str, check: impl FnOnce(&mut Self)) {
        let here = self.at.len();
        self.at.push_str(step);
        check(self);
        self.at.truncate(here);
    }

    fn value(&mut self, ty: TypeRef<'_>, held: &Value) {
        match ty.shape(self.types) {
            Shape::Map(shape) => match entries(Some(held)) {
                Ok(object) => object.into_iter().for_each(|object| self.map(&shape, object)),
                Err(misfit) => self.report(misfit.text),
            },
            Shape::List(shape) => match items(Some(held)) {
                Ok(items) => self.list(&shape, items),
                Err(misfit) => self.report(misfit.text),
            },
            Shape::Scalar(ty) => self.scalar(ty, held),
            Shape::Deduced(shape) => held.as_object().into_iter().for_each(|object| self.map(&shape, object)),
            Shape::Untyped => {}
        }
    }

    fn map(&mut self, shape: &Map<'_>, object: &Json<String, Value>) {
        for (key, held) in object {
            let step = format!(".{key}");
            let Some(ty) = shape.entry(key).0 else {
                return self.below(&step, |check| check.report("field not declared in schema"));
            };
            self.below(&step, |check| check.value(ty, held));
        }
    }

    fn list(&mut self, shape: &List<'_>, items: &[Value]) {
        let mut seen = BTreeSet::new();
        for (i, held) in items.iter().enumerate() {
            let step = if matches!(shape.relation, Relation::Atomic) {
                format!("[{i}]")
            } else {
                let element = match item::element(self.types, shape, held, Reading::Raw) {
                    Ok(element) => element,
                    Err(why) => return self.report(format!("element {i}: {why}")),
                };
                let step = element.to_string();
                if !seen.insert(element) && self.duplicates == Duplicates::Refused {
                    self.report(format!("duplicate entries for key {step}"));
                }
                step
            };
            self.below(&step, |check| check.value(shape.of, held));
        }
    }

    fn scalar(&mut self, ty: &FieldType, held: &Value) {
        match (ty, held) {
            (_, Value::Null) => {}
            (FieldType::String | FieldType::Bytes, held) if !held.is_string() => {
                self.report(format!("expected string, got {}", Syntax(held)));
            }
            (FieldType::Bool, held) if !held.is_boolean() => {
                self.report(format!("expected boolean, got {}", Pointer(held)));
            }
            (FieldType::Int32 | FieldType::Int64 | FieldType::Number, held) if !held.is_number() => {
                self.report(format!("expected numeric (int or float), got {}", go_type(held)));
            }
            (_, held) if held.is_object() || held.is_array() => {
                self.report(format!("expected any scalar, got {}", Pointer(held)));
            }
            _ => {}
        }
    }
}
