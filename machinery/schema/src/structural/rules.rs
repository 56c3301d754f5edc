//! Rules (`x-kubernetes-validations`): expressions over the values of a schema's places, compiled once, judged when
//! a definition is written, and evaluated over objects.
//!
//! Upstream's types, limits, paths and texts. What expressions mean is `portico_cel`'s business.

mod compiled;
mod cost;
pub mod definition;
mod evaluation;
mod message;
mod path;
mod ratchet;
mod tree;
mod types;
mod walk;

use portico_machinery::field::{Error, Path};
use serde_json::Value;

pub(super) use tree::Tree;
pub(super) use walk::object as judge;

/// The most that one evaluation may cost.
const MOST_PER_CALL: u64 = 1_000_000;
/// The most that all evaluations over one object may cost.
pub const MOST_PER_OBJECT: i64 = 10_000_000;
/// The most bytes of a request: what bounds what a schema leaves unbounded.
const MOST_REQUEST_BYTES: u64 = 3 * 1024 * 1024;

/// Validates a default by the rules of its place and below, as upstream does when a definition is written: as if it had been
/// there before, and as if it were new. What is left of the budget comes back, less than nothing when it is used up.
#[must_use]
pub(super) fn validate_default(tree: &Tree, default: &Value, path: &Path, budget: i64) -> (Vec<Error>, i64) {
    let (kept, left) = walk::value(tree, default, Some(default), path, budget);
    if !kept.errors.is_empty() {
        return (kept.errors, left);
    }
    let (fresh, left_fresh) = walk::value(tree, default, None, path, budget);
    (fresh.errors, left.min(left_fresh))
}

/// What rules say of an object.
#[derive(Debug, Default)]
pub struct Judged {
    /// What is wrong with it.
    pub errors: Vec<Error>,
    /// What is wrong with it but was before: told, not refused.
    pub warnings: Vec<String>,
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod upstream;
