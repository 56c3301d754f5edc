//! What expressions may write out that change objects: `Object{...}` and `JSONPatch{...}` (upstream's `DynamicTypeResolver`).

use std::sync::{Arc, LazyLock};

use portico_cel::decl::{FieldTypes, ObjectTypes};
use portico_cel::library;
use portico_cel::{Environment, Type};

use crate::declarations::Release;

/// The type of a configuration; `Object.spec` and so on are those of its parts.
pub(crate) const OBJECT: &str = "Object";
/// The type of one operation of a patch.
pub(crate) const PATCH: &str = "JSONPatch";

/// Environments without variables, for each release.
static ENVIRONMENTS: LazyLock<[Environment; 2]> =
    LazyLock::new(|| [Release::New, Release::Stored].map(build));

/// The environment of expressions that change objects, without variables.
pub(crate) fn environment(release: Release) -> Environment {
    let [new, stored] = &*ENVIRONMENTS;
    match release {
        Release::New => new.clone(),
        Release::Stored => stored.clone(),
    }
}

fn build(release: Release) -> Environment {
    let builder = Environment::builder().language(release.language());
    // No function of a release has the name of one of this library.
    let with_library = builder.clone().library(library::json_patch());
    with_library.unwrap_or(builder).objects(Arc::new(Written)).build()
}

/// Finds the types.
#[derive(Debug)]
struct Written;

/// Any field may be set, to anything.
#[derive(Debug)]
struct AnyField;

/// The fields of an operation.
#[derive(Debug)]
struct OfPatch;

impl ObjectTypes for Written {
    fn find(&self, name: &str) -> Option<Type> {
        if name == PATCH {
            return Some(Type::open_object(PATCH, Arc::new(OfPatch)));
        }
        let of_object =
            name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        of_object.then(|| Type::open_object(name, Arc::new(AnyField)))
    }
}

impl FieldTypes for AnyField {
    fn field(&self, _name: &str) -> Option<Type> {
        Some(Type::Dyn)
    }
}

impl FieldTypes for OfPatch {
    fn field(&self, name: &str) -> Option<Type> {
        match name {
            "op" | "path" | "from" => Some(Type::String),
            "value" => Some(Type::Dyn),
            // Upstream finds a type for any field, of which nothing is.
            _ => Some(Type::object("")),
        }
    }
}
