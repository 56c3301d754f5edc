//! How much objects of a kind need, and of what.

use jiff::Timestamp;
use portico_machinery::Object;
use portico_validation::pod_spec::totals::Amounts;

use crate::requirement::Requirement;

/// What quotas know of a kind.
pub trait Evaluator: Send + Sync {
    /// Whether objects of the kind need any of this resource of quotas.
    fn counts(&self, resource: &str) -> bool;

    /// What an object needs.
    fn usage(&self, object: &Object, now: Timestamp) -> Amounts;

    /// Whether each object needs one of each resource that is counted, whatever it holds, and none is in any scope: then
    /// nothing has to be decoded to count them.
    fn is_plain_count(&self) -> bool {
        false
    }

    /// When what an object needs changes next though nothing is written.
    fn changes_at(&self, _object: &Object, _now: Timestamp) -> Option<Timestamp> {
        None
    }

    /// What an object must say when these are limited; the words if it does not.
    ///
    /// # Errors
    /// What is missing, in upstream's words.
    fn constraints(&self, _limited: &[&str], _object: &Object) -> Result<(), String> {
        Ok(())
    }

    /// Whether an object is in a scope; kinds without scopes are in none.
    fn in_scope(&self, _scope: &Requirement<'_>, _object: &Object) -> bool {
        false
    }
}
