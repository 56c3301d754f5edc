//! Atomic lists and maps in a configuration: applying them removes the elements that the configuration omits (upstream's
//! `findAtomics`).

use serde_json::{Map as Json, Value};

use super::shape::{List, Map, Relation, Shape, TypeRef};
use crate::model::TypeSet;

/// Returns the paths of atomic values in a checked object: `.spec.selector`, `.spec.containers[0].args`.
pub(super) fn find_atomics(types: &TypeSet, root: Map<'_>, object: &Json<String, Value>) -> Vec<String> {
    let mut search = AtomicSearch { types, path: String::new(), found: Vec::new() };
    search.map(&root, object);
    search.found
}

struct AtomicSearch<'t> {
    types: &'t TypeSet,
    path: String,
    found: Vec<String>,
}

impl AtomicSearch<'_> {
    fn value(&mut self, ty: TypeRef<'_>, value: &Value) {
        match (ty.shape(self.types), value) {
            (Shape::Map(shape) | Shape::Deduced(shape), Value::Object(object)) => self.map(&shape, object),
            (Shape::List(shape), Value::Array(items)) => self.list(&shape, items),
            (Shape::Deduced(_) | Shape::Untyped, Value::Array(_)) | (Shape::Untyped, Value::Object(_)) => {
                self.found.push(self.path.clone());
            }
            _ => {}
        }
    }

    fn map(&mut self, shape: &Map<'_>, object: &Json<String, Value>) {
        if shape.atomic {
            self.found.push(self.path.clone());
        }
        for (key, value) in object {
            if let (Some(ty), true) = shape.entry(key) {
                self.visit_child(&format!(".{key}"), ty, value);
            }
        }
    }

    fn list(&mut self, shape: &List<'_>, items: &[Value]) {
        if matches!(shape.relation, Relation::Atomic) {
            self.found.push(self.path.clone());
        }
        for (index, item) in items.iter().enumerate() {
            self.visit_child(&format!("[{index}]"), shape.element_type, item);
        }
    }

    fn visit_child(&mut self, step: &str, ty: TypeRef<'_>, value: &Value) {
        let length = self.path.len();
        self.path.push_str(step);
        self.value(ty, value);
        self.path.truncate(length);
    }
}
