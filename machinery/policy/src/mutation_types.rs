//! CEL types of mutating expressions: `Object{...}` and `JSONPatch{...}` (upstream's `DynamicTypeResolver`).

use std::sync::{Arc, LazyLock};

use portico_cel::decl::{FieldTypes, ObjectTypes};
use portico_cel::library;
use portico_cel::{Environment, Type};

use crate::declarations::EnvironmentType;

/// Type name of an apply configuration. Types of its fields are `Object.spec` and so on.
pub(crate) const OBJECT: &str = "Object";
/// Type name of one operation of a JSON patch.
pub(crate) const PATCH: &str = "JSONPatch";

/// Environments without variables, for each environment type.
static ENVIRONMENTS: LazyLock<[Environment; 2]> =
    LazyLock::new(|| [EnvironmentType::NewExpressions, EnvironmentType::StoredExpressions].map(build));

/// Returns the environment of mutating expressions, without variables.
pub(crate) fn environment(release: EnvironmentType) -> Environment {
    let [new, stored] = &*ENVIRONMENTS;
    match release {
        EnvironmentType::NewExpressions => new.clone(),
        EnvironmentType::StoredExpressions => stored.clone(),
    }
}

fn build(release: EnvironmentType) -> Environment {
    let builder = Environment::builder().language(release.language());
    // The library has no function in common with the language of any release.
    let with_library = builder.clone().library(library::json_patch());
    with_library.unwrap_or(builder).objects(Arc::new(MutationTypes)).build()
}

/// Resolves the types of mutating expressions by name.
#[derive(Debug)]
struct MutationTypes;

/// Type in which every field name is allowed and has any type.
#[derive(Debug)]
struct AnyField;

/// Fields of an operation of a JSON patch.
#[derive(Debug)]
struct PatchFields;

impl ObjectTypes for MutationTypes {
    fn find(&self, name: &str) -> Option<Type> {
        if name == PATCH {
            return Some(Type::open_object(PATCH, Arc::new(PatchFields)));
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

impl FieldTypes for PatchFields {
    fn field(&self, name: &str) -> Option<Type> {
        match name {
            "op" | "path" | "from" => Some(Type::String),
            "value" => Some(Type::Dyn),
            // Upstream finds a type for every field. No value has this type.
            _ => Some(Type::object("")),
        }
    }
}
