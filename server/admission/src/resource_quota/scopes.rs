//! Scopes: which objects a quota is about.

use portico_machinery::Object;

use super::evaluator::Evaluator;
use super::requirement::Requirement;

/// Whether an object is in all scopes of a quota.
pub(super) fn matches(quota: &Object, object: &Object, evaluator: &dyn Evaluator) -> bool {
    let spec = quota.at(&["spec"]);
    let plain = spec.field("scopes").items().all(|scope| {
        let scope = Requirement { scope: scope.str(), operator: "Exists", values: Vec::new() };
        evaluator.in_scope(&scope, object)
    });
    let selector = spec.field("scopeSelector").field("matchExpressions");
    plain && selector.items().all(|scope| evaluator.in_scope(&Requirement::read(&scope), object))
}
