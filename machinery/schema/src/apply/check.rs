//! Checks a configuration against its type: no unknown fields, elements with keys, no duplicates.

use std::collections::BTreeSet;

use portico_machinery::Bounded;
use portico_machinery::bounded::Weight;
use portico_machinery::object::{cut, go_type};
use serde_json::{Map as Json, Value};

use super::item;
use super::printed::{GoPointer, GoSyntax};
use super::reading::{ReadMode, entries, items};
use super::shape::{List, Map, Relation, Shape, TypeRef};
use super::type_mismatch::{TypeMismatch, TypeMismatches};
use crate::model::{FieldType, TypeSet};

/// Maximum number of reported mismatches. Each contains its path, and together they could be far larger than the object.
/// Upstream has no limit.
const MAX_REPORTED: usize = 256;
/// Maximum bytes of reported mismatches.
const MAX_REPORTED_BYTES: usize = 256 * 1024;

/// Handling of duplicate elements in a list that is a set or a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    Rejected,
    Allowed,
}

/// Returns all mismatches. The check of a map ends at an unknown field, that of a list at an element without keys.
pub(super) fn check_object(
    types: &TypeSet,
    root: Map<'_>,
    object: &Json<String, Value>,
    duplicates: Duplicates,
) -> Result<(), TypeMismatches> {
    let mut check = Check {
        types,
        duplicates,
        path: String::new(),
        found: Bounded::new(MAX_REPORTED, MAX_REPORTED_BYTES),
    };
    check.map(&root, object);
    let found = check.found.into_items();
    if found.is_empty() { Ok(()) } else { Err(TypeMismatches(found)) }
}

struct Check<'t> {
    types: &'t TypeSet,
    duplicates: Duplicates,
    path: String,
    found: Bounded<TypeMismatch>,
}

impl Weight for TypeMismatch {
    fn bytes(&self) -> usize {
        self.path.len() + self.text.len()
    }
}

impl Check<'_> {
    fn report(&mut self, text: impl Into<String>) {
        let path = &self.path;
        self.found.push_with(|| TypeMismatch { path: cut(path.clone()), text: cut(text.into()) });
    }

    fn check_child(&mut self, step: &str, check: impl FnOnce(&mut Self)) {
        let path_len = self.path.len();
        self.path.push_str(step);
        check(self);
        self.path.truncate(path_len);
    }

    fn value(&mut self, ty: TypeRef<'_>, value: &Value) {
        match ty.shape(self.types) {
            Shape::Map(shape) => match entries(Some(value)) {
                Ok(object) => object.into_iter().for_each(|object| self.map(&shape, object)),
                Err(mismatch) => self.report(mismatch.text),
            },
            Shape::List(shape) => match items(Some(value)) {
                Ok(items) => self.list(&shape, items),
                Err(mismatch) => self.report(mismatch.text),
            },
            Shape::Scalar(ty) => self.scalar(ty, value),
            Shape::Deduced(shape) => {
                value.as_object().into_iter().for_each(|object| self.map(&shape, object))
            }
            Shape::Untyped => {}
        }
    }

    fn map(&mut self, shape: &Map<'_>, object: &Json<String, Value>) {
        for (key, value) in object {
            let step = format!(".{key}");
            let Some(ty) = shape.entry(key).0 else {
                return self.check_child(&step, |check| check.report("field not declared in schema"));
            };
            self.check_child(&step, |check| check.value(ty, value));
        }
    }

    fn list(&mut self, shape: &List<'_>, items: &[Value]) {
        let mut seen = BTreeSet::new();
        for (i, value) in items.iter().enumerate() {
            let step = if matches!(shape.relation, Relation::Atomic) {
                format!("[{i}]")
            } else {
                let element = match item::path_element(self.types, shape, value, ReadMode::Raw) {
                    Ok(element) => element,
                    Err(reason) => return self.report(format!("element {i}: {reason}")),
                };
                let step = element.to_string();
                if !seen.insert(element) && self.duplicates == Duplicates::Rejected {
                    self.report(format!("duplicate entries for key {step}"));
                }
                step
            };
            self.check_child(&step, |check| check.value(shape.element_type, value));
        }
    }

    fn scalar(&mut self, ty: &FieldType, value: &Value) {
        match (ty, value) {
            (_, Value::Null) => {}
            (FieldType::String | FieldType::Bytes, value) if !value.is_string() => {
                self.report(format!("expected string, got {}", GoSyntax(value)));
            }
            (FieldType::Bool, value) if !value.is_boolean() => {
                self.report(format!("expected boolean, got {}", GoPointer(value)));
            }
            (FieldType::Int32 | FieldType::Int64 | FieldType::Number, value) if !value.is_number() => {
                self.report(format!("expected numeric (int or float), got {}", go_type(value)));
            }
            (_, value) if value.is_object() || value.is_array() => {
                self.report(format!("expected any scalar, got {}", GoPointer(value)));
            }
            _ => {}
        }
    }
}
