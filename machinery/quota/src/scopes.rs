//! Scopes: which objects a quota is about.

use portico_machinery::Object;

use crate::evaluator::Evaluator;
use crate::requirement::Requirement;

/// The scopes of a quota: those that are only named, then those of its selector (upstream's `getScopeSelectorsFromQuota`).
#[must_use]
pub fn requirements(quota: &Object) -> Vec<Requirement<'_>> {
    let named = quota.at(&["spec", "scopes"]);
    let selector = quota.at(&["spec", "scopeSelector", "matchExpressions"]);
    let named = named.items().map(|scope| Requirement::exists(scope.str()));
    named.chain(selector.items().map(|scope| Requirement::read(&scope))).collect()
}

/// Whether an object is in all of these scopes.
#[must_use]
pub fn matches(scopes: &[Requirement<'_>], object: &Object, evaluator: &dyn Evaluator) -> bool {
    scopes.iter().all(|scope| evaluator.in_scope(scope, object))
}
