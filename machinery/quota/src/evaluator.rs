//! Interface of the evaluators: usage of quota resources by objects of a kind.

use jiff::Timestamp;
use portico_machinery::Object;
use portico_validation::pod_spec::totals::ResourceList;

use crate::requirement::ScopeRequirement;

/// Computes the usage of quota resources by objects of one kind (upstream's `quota.Evaluator`).
pub trait Evaluator: Send + Sync {
    /// True if objects of the kind use this quota resource (upstream's `MatchingResources`).
    fn matches_resource(&self, resource: &str) -> bool;

    /// Returns the quota resources that an object uses.
    fn usage(&self, object: &Object, now: Timestamp) -> ResourceList;

    /// True if each object uses one of each counted resource, regardless of its content, and no object is in any scope. Objects
    /// can then be counted without decoding them.
    fn is_plain_count(&self) -> bool {
        false
    }

    /// Returns the next time at which the usage of an object changes without a write; `None` if it does not.
    fn next_usage_change(&self, _object: &Object, _now: Timestamp) -> Option<Timestamp> {
        None
    }

    /// Checks that an object sets the fields required when these resources are limited.
    ///
    /// # Errors
    /// The missing fields, in upstream's message.
    fn check_constraints(&self, _limited: &[&str], _object: &Object) -> Result<(), String> {
        Ok(())
    }

    /// True if an object is in a scope. Objects of kinds without scopes are in none.
    fn in_scope(&self, _scope: &ScopeRequirement<'_>, _object: &Object) -> bool {
        false
    }
}
