//! Combined requirements on one key: the time to match does not grow with the number of requirements.

use super::requirement::{Operator, Requirement};

/// Number of values of a single requirement up to which they are compared one by one.
const FEW_VALUES: usize = 8;

/// All requirements of a selector on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyTest {
    /// Index of the first requirement on the key.
    pub first: usize,
    /// True if an object without the key does not match.
    pub is_required: bool,
    /// `None` if the first requirement is the only one and has few values.
    combined: Option<Box<Combined>>,
}

/// The conjunction of several requirements on one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Combined {
    /// True if no value matches.
    is_impossible: bool,
    /// Sorted values of which one is required.
    allowed: Option<Box<[Box<str>]>>,
    /// Sorted values that do not match.
    denied: Box<[Box<str>]>,
    /// Exclusive lower bound.
    above: Option<i64>,
    /// Exclusive upper bound.
    below: Option<i64>,
}

impl KeyTest {
    /// Combines the requirements of one key, the first of which has this index.
    pub fn new(first: usize, requirements: &[Requirement]) -> Self {
        let is_required = requirements.iter().any(|requirement| !requirement.matches(None));
        let is_simple = matches!(requirements, [only] if only.values.len() <= FEW_VALUES);
        let combined = (!is_simple).then(|| Box::new(Combined::new(requirements)));
        Self { first, is_required, combined }
    }

    /// True if an object that has the key with this value matches.
    pub fn matches(&self, first: &Requirement, value: &str) -> bool {
        match &self.combined {
            None => first.matches(Some(value)),
            Some(combined) => combined.matches(value),
        }
    }
}

impl Combined {
    fn new(requirements: &[Requirement]) -> Self {
        let mut combined = Self::default();
        let mut denied: Vec<&str> = Vec::new();
        for requirement in requirements {
            let bound = || requirement.values.first().and_then(|value| value.parse::<i64>().ok());
            match requirement.operator {
                Operator::Exists => {}
                Operator::DoesNotExist => combined.is_impossible = true,
                Operator::Equals | Operator::In => combined.allow(&requirement.values),
                Operator::NotEquals | Operator::NotIn => {
                    denied.extend(requirement.values.iter().map(String::as_str));
                }
                Operator::GreaterThan => match bound() {
                    Some(bound) => combined.above = combined.above.max(Some(bound)),
                    None => combined.is_impossible = true,
                },
                Operator::LessThan => match bound() {
                    Some(bound) => combined.below = Some(combined.below.map_or(bound, |b| b.min(bound))),
                    None => combined.is_impossible = true,
                },
            }
        }
        combined.denied = sorted(denied);
        combined
    }

    /// Intersects the allowed values with these values.
    fn allow(&mut self, values: &[String]) {
        let values = sorted(values.iter().map(String::as_str).collect());
        self.allowed = Some(match self.allowed.take() {
            None => values,
            Some(allowed) => allowed.into_iter().filter(|value| contains(&values, value)).collect(),
        });
    }

    fn matches(&self, value: &str) -> bool {
        let is_within = || {
            let bounded = self.above.is_some() || self.below.is_some();
            let fits = |n: i64| self.above.is_none_or(|above| n > above) && self.below.is_none_or(|b| n < b);
            !bounded || value.parse().is_ok_and(fits)
        };
        !self.is_impossible
            && self.allowed.as_ref().is_none_or(|allowed| contains(allowed, value))
            && !contains(&self.denied, value)
            && is_within()
    }
}

fn sorted(mut values: Vec<&str>) -> Box<[Box<str>]> {
    values.sort_unstable();
    values.dedup();
    values.into_iter().map(Box::from).collect()
}

fn contains(sorted: &[Box<str>], value: &str) -> bool {
    sorted.binary_search_by(|held| (**held).cmp(value)).is_ok()
}
