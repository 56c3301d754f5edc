//! Validation rules (`x-kubernetes-validations`): CEL expressions over the values of schema nodes. They are compiled once,
//! validated when a definition is written, and evaluated for objects.
//!
//! Types, limits, paths and messages are upstream's. `portico_cel` implements the expression language.

mod compiled;
mod context;
mod cost;
pub mod definition;
mod evaluation;
mod findings;
mod limits;
mod message;
mod path;
mod place;
mod ratchet;
mod tree;
mod types;
mod walk;

use portico_machinery::field::{Error, Path};
use serde_json::Value;

pub(super) use context::Context;
pub use findings::Findings;
pub use limits::MAX_PER_OBJECT;
pub(super) use tree::Tree;
pub(super) use types::declare;
pub(super) use walk::object as validate;

/// Validates a default with the rules of its node and below, as upstream does when a definition is written: once as an
/// unchanged value, and once as a new one. Also returns the remaining budget, negative if it is used up.
#[must_use]
pub(super) fn validate_default(
    tree: &Tree,
    default: &Value,
    path: &Path,
    budget: i64,
    context: &Context<'_>,
) -> (Vec<Error>, i64) {
    let (kept, left) = walk::value(tree, (default, Some(default)), path, budget, context);
    if !kept.errors.is_empty() {
        return (kept.errors, left);
    }
    let (fresh, left_fresh) = walk::value(tree, (default, None), path, budget, context);
    (fresh.errors, left.min(left_fresh))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod upstream;
