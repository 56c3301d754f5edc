//! Combined requirements on one key: the time to match does not grow with the number of requirements.

use super::requirement::{Operator, Requirement};

/// Number of values of a single requirement up to which they are compared one by one.
const FEW_VALUES: usize = 8;

/// All requirements of a selector on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyRequirement {
    /// Index of the first requirement on the key.
    pub first: usize,
    /// True if an object without the key does not match.
    pub is_required: bool,
    /// `None` if the first requirement is the only one and has few values.
    combined: Option<Box<CombinedRequirement>>,
}

/// The conjunction of several requirements on one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CombinedRequirement {
    /// True if no value matches.
    is_impossible: bool,
    /// Sorted values of which one is required.
    allowed: Option<Box<[Box<str>]>>,
    /// Sorted values that do not match.
    denied: Box<[Box<str>]>,
    /// Exclusive lower bound.
    greater_than: Option<i64>,
    /// Exclusive upper bound.
    less_than: Option<i64>,
}

impl KeyRequirement {
    /// Combines the requirements of one key, the first of which has this index.
    pub fn new(first: usize, requirements: &[Requirement]) -> Self {
        let is_required = requirements.iter().any(|requirement| !requirement.matches(None));
        let is_simple = matches!(requirements, [only] if only.values.len() <= FEW_VALUES);
        let combined = (!is_simple).then(|| Box::new(CombinedRequirement::new(requirements)));
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

impl CombinedRequirement {
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
                    Some(bound) => combined.greater_than = combined.greater_than.max(Some(bound)),
                    None => combined.is_impossible = true,
                },
                Operator::LessThan => match bound() {
                    Some(bound) => {
                        combined.less_than = Some(combined.less_than.map_or(bound, |b| b.min(bound)))
                    }
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
            let bounded = self.greater_than.is_some() || self.less_than.is_some();
            let is_in_range = |n: i64| {
                self.greater_than.is_none_or(|bound| n > bound) && self.less_than.is_none_or(|b| n < b)
            };
            !bounded || value.parse().is_ok_and(is_in_range)
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
    sorted.binary_search_by(|element| (**element).cmp(value)).is_ok()
}
