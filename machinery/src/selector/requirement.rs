//! Requirement of a label selector.

use crate::{aggregate, names};
use portico_gostd::strconv::quote;

/// Comparison operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `k=v`, `k==v`
    Equals,
    /// `k!=v`; an absent key matches
    NotEquals,
    /// `k in (a,b)`
    In,
    /// `k notin (a,b)`; an absent key matches
    NotIn,
    /// `k`
    Exists,
    /// `!k`
    DoesNotExist,
    /// `k>n`
    GreaterThan,
    /// `k<n`
    LessThan,
}

impl Operator {
    /// Returns the spelling in a selector.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Equals => "=",
            Self::NotEquals => "!=",
            Self::In => "in",
            Self::NotIn => "notin",
            Self::Exists => "exists",
            Self::DoesNotExist => "!",
            Self::GreaterThan => "gt",
            Self::LessThan => "lt",
        }
    }
}

/// Requirement on the value of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Key of the label.
    pub key: String,
    /// Comparison operator.
    pub operator: Operator,
    /// Values to compare with.
    pub values: Vec<String>,
}

/// Error for an invalid selector, with upstream's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidLabelSelector(pub(super) String);

impl Requirement {
    /// Creates a requirement, and validates its key and values.
    ///
    /// # Errors
    /// [`InvalidLabelSelector`].
    pub fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, InvalidLabelSelector> {
        Self::check_key(key, "key")?;
        let refused = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                Some("values set must be empty for exists and does not exist")
            }
            _ => None,
        };
        let mut errors: Vec<String> = Vec::new();
        errors.extend(refused.map(|text| format!("values: Invalid value: {values:?}: {text}")));
        errors.extend(value_errors(key, operator, &values));
        if errors.is_empty() {
            return Ok(Self { key: key.to_owned(), operator, values });
        }
        Err(InvalidLabelSelector(aggregate(errors)))
    }

    /// Validates a key; `location` is printed in the error.
    pub(super) fn check_key(key: &str, location: &str) -> Result<(), InvalidLabelSelector> {
        let messages = names::qualified_name(key);
        if messages.is_empty() {
            return Ok(());
        }
        let text = format!("{location}: Invalid value: {}: {}", quote(key), messages.join("; "));
        Err(InvalidLabelSelector(text))
    }

    pub(super) fn matches(&self, value: Option<&str>) -> bool {
        let listed = |v: &str| self.values.iter().any(|x| x == v);
        let compare = |test: fn(i64, i64) -> bool| {
            let bound = self.values.first().and_then(|v| v.parse().ok());
            value.and_then(|v| v.parse().ok()).zip(bound).is_some_and(|(v, b)| test(v, b))
        };
        match self.operator {
            Operator::Equals | Operator::In => value.is_some_and(listed),
            Operator::NotEquals | Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => compare(|v, b| v > b),
            Operator::LessThan => compare(|v, b| v < b),
        }
    }
}

/// Returns the errors of values: first the values that are not integers, as in `labels.NewRequirement`.
fn value_errors(key: &str, operator: Operator, values: &[String]) -> Vec<String> {
    let integers = matches!(operator, Operator::GreaterThan | Operator::LessThan);
    let no_integer = |value: &String| integers && value.parse::<i64>().is_err();
    let integers = values.iter().enumerate().filter(|(_, value)| no_integer(value)).map(|(index, value)| {
        let text = "for 'Gt', 'Lt' operators, the value must be an integer";
        format!("values[{index}]: Invalid value: {}: {text}", quote(value))
    });
    let labels = values.iter().enumerate().filter_map(|(index, value)| {
        let messages = names::label_value(value);
        let text =
            || format!("values[{index}][{key}]: Invalid value: {}: {}", quote(value), messages.join("; "));
        (!messages.is_empty()).then(text)
    });
    integers.chain(labels).collect()
}
