//! How much objects of a kind need, and of what.

use jiff::Timestamp;
use portico_machinery::Object;

use super::requirement::Requirement;
use portico_registry::Write;
use portico_validation::pod_spec::totals::Amounts;

/// What quotas know of a kind.
pub(super) trait Evaluator: Send + Sync {
    /// Whether a write may change what is used.
    fn handles(&self, write: &Write<'_>) -> bool;

    /// Whether objects of the kind need any of this resource of quotas.
    fn counts(&self, resource: &str) -> bool;

    /// What an object needs.
    fn usage(&self, object: &Object, now: Timestamp) -> Amounts;

    /// What an object must say when these are limited; the words if it does not.
    fn constraints(&self, _limited: &[&str], _object: &Object) -> Result<(), String> {
        Ok(())
    }

    /// Whether an object is in a scope; kinds without scopes are in none.
    fn in_scope(&self, _scope: &Requirement<'_>, _object: &Object) -> bool {
        false
    }
}
