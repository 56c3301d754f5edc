//! Scope of a quota.

use std::fmt;

use portico_machinery::Cursor;

/// Scope of a quota, with the condition on its value (upstream's `ScopedResourceSelectorRequirement`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeRequirement<'a> {
    /// Name of the scope.
    pub scope: &'a str,
    /// `Exists`, `DoesNotExist`, `In` or `NotIn`.
    pub operator: &'a str,
    /// Values for `In` and `NotIn`.
    pub values: Vec<&'a str>,
}

impl<'a> ScopeRequirement<'a> {
    /// Creates the requirement of a scope that is listed in `spec.scopes`.
    pub(crate) fn exists(scope: &'a str) -> Self {
        Self { scope, operator: "Exists", values: Vec::new() }
    }

    /// Reads an entry of `matchExpressions`.
    pub(crate) fn read(at: &Cursor<'a>) -> Self {
        Self {
            scope: at.field("scopeName").str(),
            operator: at.field("operator").str(),
            values: at.field("values").items().map(|value| value.str()).collect(),
        }
    }

    /// True if the values of an object meet the condition. `own` is empty for an object without a value.
    pub(crate) fn matches_values(&self, object_values: &[&str]) -> bool {
        let listed = |value: &&str| self.values.contains(value);
        match self.operator {
            "Exists" => !object_values.is_empty(),
            "DoesNotExist" => object_values.is_empty(),
            "In" => object_values.iter().any(listed),
            "NotIn" => object_values.is_empty() || object_values.iter().any(|value| !listed(value)),
            _ => false,
        }
    }
}

impl fmt::Display for ScopeRequirement<'_> {
    /// Formats the requirement as Go formats the struct with `%v`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{} {} [{}]}}", self.scope, self.operator, self.values.join(" "))
    }
}
