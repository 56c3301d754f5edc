//! The structural dialect: what a custom resource's schema says, and what it does with objects.
//!
//! An `openAPIV3Schema` arrives as JSON and is compiled once into a tree of shared nodes. The components below walk an object
//! and that tree side by side. Must not know CustomResourceDefinitions (who they are served by, their versions), storage or
//! HTTP; what may stand in a definition's schema is validated elsewhere, before it comes here.

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
