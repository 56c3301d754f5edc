//! Scopes: the objects to which a quota applies.

use portico_machinery::Object;

use crate::evaluator::Evaluator;
use crate::requirement::ScopeRequirement;

/// Returns the scopes of a quota: first `spec.scopes`, then the scope selector (upstream's `getScopeSelectorsFromQuota`).
#[must_use]
pub fn scope_requirements(quota: &Object) -> Vec<ScopeRequirement<'_>> {
    let named = quota.at(&["spec", "scopes"]);
    let selector = quota.at(&["spec", "scopeSelector", "matchExpressions"]);
    let named = named.items().map(|scope| ScopeRequirement::exists(scope.str()));
    named.chain(selector.items().map(|scope| ScopeRequirement::read(&scope))).collect()
}

/// True if an object is in all of these scopes.
#[must_use]
pub fn matches_scopes(scopes: &[ScopeRequirement<'_>], object: &Object, evaluator: &dyn Evaluator) -> bool {
    scopes.iter().all(|scope| evaluator.in_scope(scope, object))
}
