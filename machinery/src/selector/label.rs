//! Label selectors: equality, sets, existence and integer comparison.

use portico_gostd::strconv::quote;

use super::parse;
use crate::{aggregate, names};

/// How a requirement compares.
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
    /// The name that it has in a selector.
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

/// One requirement on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// How to compare.
    pub operator: Operator,
    /// With what.
    pub values: Vec<String>,
}

/// A conjunction of requirements; empty selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// A selector that cannot be read, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidLabelSelector(pub(super) String);

/// What is wrong with values: those that are no integers first, as `labels.NewRequirement` has it.
fn wrong_values(key: &str, operator: Operator, values: &[String]) -> Vec<String> {
    let integers = matches!(operator, Operator::GreaterThan | Operator::LessThan);
    let no_integer = |value: &String| integers && value.parse::<i64>().is_err();
    let integers = values.iter().enumerate().filter(|(_, value)| no_integer(value)).map(|(at, value)| {
        let text = "for 'Gt', 'Lt' operators, the value must be an integer";
        format!("values[{at}]: Invalid value: {}: {text}", quote(value))
    });
    let labels = values.iter().enumerate().filter_map(|(at, value)| {
        let messages = names::label_value(value);
        let text =
            || format!("values[{at}][{key}]: Invalid value: {}: {}", quote(value), messages.join("; "));
        (!messages.is_empty()).then(text)
    });
    integers.chain(labels).collect()
}

impl LabelSelector {
    /// Parses the query form.
    ///
    /// # Errors
    /// [`InvalidLabelSelector`], answered with 400.
    pub fn parse(text: &str) -> Result<Self, InvalidLabelSelector> {
        Ok(Self { requirements: parse::requirements(text)? })
    }

    /// A selector of ready requirements (label selectors inside objects).
    #[must_use]
    pub fn new(requirements: Vec<Requirement>) -> Self {
        Self { requirements }
    }

    /// The requirements, in order.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether everything matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether labels that `get` tells satisfy every requirement.
    pub fn matches<'v>(&self, get: impl Fn(&str) -> Option<&'v str>) -> bool {
        self.requirements.iter().all(|r| r.matches(get(&r.key)))
    }
}

impl Requirement {
    /// A requirement that can hold.
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
        errors.extend(wrong_values(key, operator, &values));
        if errors.is_empty() {
            return Ok(Self { key: key.to_owned(), operator, values });
        }
        Err(InvalidLabelSelector(aggregate(errors)))
    }

    /// Whether a key is one; `at` is what an error calls the place of it.
    pub(super) fn check_key(key: &str, at: &str) -> Result<(), InvalidLabelSelector> {
        let messages = names::qualified_name(key);
        if messages.is_empty() {
            return Ok(());
        }
        let text = format!("{at}: Invalid value: {}: {}", quote(key), messages.join("; "));
        Err(InvalidLabelSelector(text))
    }

    fn matches(&self, value: Option<&str>) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, value: Option<&'static str>) -> bool {
        LabelSelector::parse(selector).unwrap().matches(|k| if k == "k" { value } else { None })
    }

    #[test]
    fn requirements_match_as_upstream_matches_them() {
        let rows = [
            ("", None, true),
            ("k", Some("v"), true),
            ("k", None, false),
            ("!k", None, true),
            ("k=v", Some("v"), true),
            ("k == v", Some("w"), false),
            ("k!=v", None, true),
            ("k!=v", Some("v"), false),
            ("k in (a, v)", Some("v"), true),
            ("k in (a,b)", None, false),
            ("k notin (a,b)", None, true),
            ("k>5", Some("6"), true),
            ("k<5", Some("x"), false),
            ("k=", Some(""), true),
            ("k,k!=x", Some("y"), true),
        ];
        for (selector, value, want) in rows {
            assert_eq!(matches(selector, value), want, "{selector} {value:?}");
        }
    }

    #[test]
    fn errors_use_upstreams_words() {
        let rows = [
            ("a===b", "unable to parse requirement: found '=', expected: identifier"),
            ("a,", "found '', expected: identifier after ','"),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ];
        for (selector, want) in rows {
            assert_eq!(LabelSelector::parse(selector).unwrap_err().to_string(), want, "{selector}");
        }
        assert!(LabelSelector::parse("-a=b").is_err());
        assert!(LabelSelector::parse("a=b c").is_err());
    }
}
