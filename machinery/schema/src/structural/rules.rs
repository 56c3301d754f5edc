//! Validation rules (`x-kubernetes-validations`): CEL expressions over the values of schema nodes. They are compiled once,
//! validated when a definition is written, and evaluated for objects.
//!
//! Types, limits, paths and messages are upstream's. `portico_cel` implements the expression language.

mod compiled_rule;
mod context;
mod cost;
pub mod definition;
mod evaluation;
mod findings;
mod limits;
mod message;
mod path;
mod ratchet;
mod target;
mod tree;
mod types;
mod walk;

use portico_machinery::field::{Error, Path};
use serde_json::Value;

pub(super) use context::EvaluationContext;
pub use findings::RuleFindings;
pub use limits::MAX_PER_OBJECT;
pub(super) use tree::RuleTree;
pub(super) use types::declare;
pub(super) use walk::evaluate_object as validate;

/// Validates a default with the rules of its node and below, as upstream does when a definition is written: once as an
/// unchanged value, and once as a new one. Also returns the remaining budget, negative if it is used up.
#[must_use]
pub(super) fn validate_default(
    tree: &RuleTree,
    default: &Value,
    path: &Path,
    budget: i64,
    context: &EvaluationContext<'_>,
) -> (Vec<Error>, i64) {
    let (update_findings, remaining) =
        walk::evaluate_value(tree, (default, Some(default)), path, budget, context);
    if !update_findings.errors.is_empty() {
        return (update_findings.errors, remaining);
    }
    let (create_findings, remaining_on_create) =
        walk::evaluate_value(tree, (default, None), path, budget, context);
    (create_findings.errors, remaining.min(remaining_on_create))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod upstream;
