//! One scope of a quota.

use std::fmt;

use portico_machinery::Cursor;

/// One scope of a quota, with what it asks of the value that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement<'a> {
    /// The scope's name.
    pub scope: &'a str,
    /// `Exists`, `DoesNotExist`, `In` or `NotIn`.
    pub operator: &'a str,
    /// What `In` and `NotIn` compare with.
    pub values: Vec<&'a str>,
}

impl<'a> Requirement<'a> {
    /// The requirement of a scope that is only named.
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

    /// Whether one of the values that an object has, if it has any, is what is asked for.
    pub(crate) fn takes(&self, own: &[&str]) -> bool {
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

impl fmt::Display for Requirement<'_> {
    /// As Go prints the struct with `%v`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{} {} [{}]}}", self.scope, self.operator, self.values.join(" "))
    }
}
