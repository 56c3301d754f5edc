//! Label selectors: equality, sets, existence and integer comparison.

use super::parse;
pub use super::requirement::{InvalidLabelSelector, Operator, Requirement};

/// A conjunction of requirements; empty selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
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

    /// Whether labels that `get` returns satisfy every requirement.
    pub fn matches<'v>(&self, get: impl Fn(&str) -> Option<&'v str>) -> bool {
        self.requirements.iter().all(|r| r.matches(get(&r.key)))
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
