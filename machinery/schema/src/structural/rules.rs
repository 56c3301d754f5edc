//! Rules (`x-kubernetes-validations`): expressions over the values of a schema's places, compiled once, validated when
//! a definition is written, and evaluated over objects.
//!
//! Upstream's types, limits, paths and texts. What expressions mean is `portico_cel`'s business.

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

/// Validates a default by the rules of its place and below, as upstream does when a definition is written: as if it had been
/// there before, and as if it were new. What is left of the budget comes back, less than nothing when it is used up.
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
