//! Scopes: which objects a quota is about.

use portico_machinery::{Cursor, Object};

use super::evaluator::Evaluator;

/// One scope of a quota, with what it asks of the value that goes with it.
pub(super) struct Requirement<'a> {
    /// The scope's name.
    pub(super) scope: &'a str,
    operator: &'a str,
    values: Vec<&'a str>,
}

impl<'a> Requirement<'a> {
    fn read(at: &Cursor<'a>) -> Self {
        Self {
            scope: at.field("scopeName").str(),
            operator: at.field("operator").str(),
            values: at.field("values").items().map(|value| value.str()).collect(),
        }
    }

    /// Whether one of the values that an object has, if it has any, is what is asked for.
    pub(super) fn takes(&self, own: &[&str]) -> bool {
        let listed = |value: &&str| self.values.contains(value);
        match self.operator {
            "Exists" => !own.is_empty(),
            "DoesNotExist" => own.is_empty(),
            "In" => own.iter().any(listed),
            "NotIn" => own.is_empty() || own.iter().any(|value| !listed(value)),
            _ => false,
        }
    }
}

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
