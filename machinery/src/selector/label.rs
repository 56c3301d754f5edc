//! Label selectors: equality, sets, existence and integer comparison.

use std::sync::Arc;

use super::combined::KeyRequirement;
use super::parse;
pub use super::requirement::{InvalidLabelSelector, Operator, Requirement};

/// Conjunction of requirements; an empty selector matches everything. Clones share the requirements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// Requirements sorted by key.
    requirements: Arc<[Requirement]>,
    /// One test per key, in the same order.
    tests: Arc<[KeyRequirement]>,
    /// Number of keys that an object must have.
    required: usize,
}

impl LabelSelector {
    /// Parses the form of the query parameter.
    ///
    /// # Errors
    /// [`InvalidLabelSelector`], reported with 400.
    pub fn parse(text: &str) -> Result<Self, InvalidLabelSelector> {
        Ok(Self::new(parse::requirements(text)?))
    }

    /// Creates a selector from parsed requirements (label selectors inside objects).
    #[must_use]
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        let mut tests = Vec::new();
        let mut first = 0;
        for group in requirements.chunk_by(|a, b| a.key == b.key) {
            tests.push(KeyRequirement::new(first, group));
            first += group.len();
        }
        let required = tests.iter().filter(|test| test.is_required).count();
        Self { requirements: requirements.into(), tests: tests.into(), required }
    }

    /// Returns the requirements, in order.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// True if the selector matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// True if an object with these labels, each key once, matches. The work grows with the number of labels, and with the
    /// logarithm of the number of requirements.
    pub fn matches<'l>(&self, labels: impl IntoIterator<Item = (&'l str, &'l str)>) -> bool {
        if self.is_empty() {
            return true;
        }
        let mut found = 0;
        for (key, value) in labels {
            let Ok(index) = self.tests.binary_search_by(|test| self.first(test).key.as_str().cmp(key)) else {
                continue;
            };
            let test = &self.tests[index];
            if !test.matches(self.first(test), value) {
                return false;
            }
            found += usize::from(test.is_required);
        }
        found == self.required
    }

    fn first(&self, test: &KeyRequirement) -> &Requirement {
        &self.requirements[test.first]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, value: Option<&'static str>) -> bool {
        LabelSelector::parse(selector).unwrap().matches(value.map(|value| ("k", value)))
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
            ("k,k!=x", None, false),
            ("k!=x,k!=y", None, true),
            ("k,!k", Some("y"), false),
            ("k,!k", None, false),
            ("other,k", Some("y"), false),
        ];
        for (selector, value, want) in rows {
            assert_eq!(matches(selector, value), want, "{selector} {value:?}");
        }
    }

    /// Combined requirements match like the individual requirements.
    #[test]
    fn requirements_on_one_key_match_as_one_by_one() {
        let terms = [
            "k",
            "!k",
            "k=1",
            "k!=2",
            "k in (1,2,5,10,a,b,c,d,e,f)",
            "k notin (0,2,3,4,6,7,8,9,g,h)",
            "k>0",
            "k<5",
        ];
        let values = [None, Some("0"), Some("1"), Some("2"), Some("5"), Some("10"), Some("a"), Some("x")];
        for chosen in 0..1_u32 << terms.len() {
            let chosen: Vec<&str> = terms
                .iter()
                .enumerate()
                .filter(|(index, _)| chosen >> index & 1 == 1)
                .map(|(_, term)| *term)
                .collect();
            let selector = LabelSelector::parse(&chosen.join(",")).unwrap();
            for value in values {
                let want = selector.requirements().iter().all(|requirement| requirement.matches(value));
                assert_eq!(selector.matches(value.map(|value| ("k", value))), want, "{chosen:?} {value:?}");
            }
        }
    }

    /// Counts reads of labels instead of measuring time.
    #[test]
    fn each_label_is_read_once_for_any_length_of_the_selector() {
        let terms = ["!zz{}", "label5!={}", "zz{} notin (a,b)"];
        for term in terms {
            let text: Vec<String> = (0..5_000).map(|at| term.replace("{}", &at.to_string())).collect();
            let selector = LabelSelector::parse(&text.join(",")).unwrap();
            let labels: Vec<String> = (0..10).map(|at| format!("label{at}")).collect();
            let read = std::cell::Cell::new(0);
            let counted = labels.iter().map(|key| {
                read.set(read.get() + 1);
                (key.as_str(), "value")
            });
            assert!(selector.matches(counted), "{term}");
            assert_eq!(read.get(), 10, "{term}");
        }
    }

    #[test]
    fn errors_have_upstream_messages() {
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
