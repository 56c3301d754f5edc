//! One scope of a quota.

use portico_machinery::Cursor;

/// One scope of a quota, with what it asks of the value that goes with it.
pub(super) struct Requirement<'a> {
    /// The scope's name.
    pub(super) scope: &'a str,
    pub(super) operator: &'a str,
    pub(super) values: Vec<&'a str>,
}

impl<'a> Requirement<'a> {
    pub(super) fn read(at: &Cursor<'a>) -> Self {
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
