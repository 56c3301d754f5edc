//! Structural dialect: compiled schemas of custom resources, and the operations that follow them.
//!
//! An `openAPIV3Schema` is compiled once from JSON into a tree of shared nodes. The modules below walk an object and this tree
//! in parallel. They do not depend on CustomResourceDefinitions (names, versions), storage or HTTP. [`definition`] validates
//! the schemas in definitions before they are compiled.

mod body;
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
mod intern;
mod json_type;
mod languages;
mod lists;
mod location;
mod meta;
pub mod model;
mod nulls;
mod object_or_value;
mod pattern;
mod printed;
mod prune;
mod resource;
pub mod rules;
mod stored_check;
mod validate;

pub(crate) use body::parse_body;
pub use breaking::{BreakingChange, MAX_BREAKING};
pub use compile_error::CompileError;
pub use compiled::Structural;
pub use correlate::CorrelatedPair;
pub(crate) use decode::ObjectSource;
pub use embedded::LazyPath;
pub use format::{Format, FormatKind};
pub use model::{Additional, Checks, JsonType, Rule, SchemaNode, SubtreeFlags};
pub use pattern::Pattern;
pub use resource::{CustomResource, NO_FIELD, rules_not_checked};

#[cfg(test)]
mod properties;

#[cfg(test)]
pub(crate) use decode::tests::object_meta as object_meta_for_tests;
