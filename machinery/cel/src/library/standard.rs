//! Standard functions of the language: operators, comparisons, conversions, text, time, containers.

mod arithmetic;
mod compare;
mod containers;
mod convert;
mod logic;
#[cfg(feature = "regex")]
mod matches;
mod text;
mod time;
mod zone;

use super::declaration::Library;
use crate::types::Type;

/// Returns all standard functions.
#[must_use]
pub fn library() -> Library {
    let groups = vec![
        logic::functions(),
        arithmetic::functions(),
        compare::functions(),
        containers::functions(),
        convert::functions(),
        text::functions(),
        time::functions(),
        #[cfg(feature = "regex")]
        vec![matches::function()],
    ];
    Library {
        name: "standard",
        functions: groups.into_iter().flatten().collect(),
        types: types(),
        macros: Vec::new(),
    }
}

/// Returns the types that expressions can name.
fn types() -> Vec<(&'static str, Type)> {
    vec![
        ("bool", Type::Bool),
        ("bytes", Type::Bytes),
        ("double", Type::Double),
        ("google.protobuf.Duration", Type::Duration),
        ("google.protobuf.Timestamp", Type::Timestamp),
        ("int", Type::Int),
        ("list", Type::list(Type::Dyn)),
        ("map", Type::map(Type::Dyn, Type::Dyn)),
        ("null_type", Type::Null),
        ("string", Type::String),
        ("type", Type::Type(None)),
        ("uint", Type::Uint),
    ]
}
