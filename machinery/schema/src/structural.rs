//! Structural dialect: compiled schemas of custom resources, and the operations that follow them.
//!
//! An `openAPIV3Schema` is compiled once from JSON into a tree of shared nodes. The modules below walk an object and this tree
//! in parallel. They do not depend on CustomResourceDefinitions (names, versions), storage or HTTP. [`definition`] validates
//! the schemas in definitions before they are compiled.

mod at;
mod breaking;
mod compile;
mod compile_error;
mod compiled;
mod correlate;
mod decode;
mod default;
pub mod definition;
mod embedded;
mod format;
mod held;
mod intern;
mod json_type;
mod languages;
mod lists;
mod meta;
pub mod model;
mod nulls;
mod pattern;
mod printed;
mod prune;
mod read;
mod resource;
pub mod rules;
mod settled;
mod validate;

pub use breaking::{Breaking, MAX_BREAKING};
pub use compile_error::CompileError;
pub use compiled::Structural;
pub use correlate::Pair;
pub(crate) use decode::Source;
pub use embedded::Place;
pub use format::{Format, FormatKind};
pub use model::{Additional, Checks, JsonType, Marks, Node, Rule};
pub use pattern::Pattern;
pub(crate) use read::body;
pub use resource::{CustomResource, NO_FIELD, rules_not_checked};

#[cfg(test)]
mod properties;

#[cfg(test)]
pub(crate) use decode::tests::object_meta as object_meta_for_tests;
