//! Field selectors: `f=v`, `f==v`, `f!=v`, joined by commas, with backslash escapes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Term of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// Field path, such as `metadata.name`.
    pub field: String,
    /// Value, unescaped.
    pub value: String,
    /// True if the operator is `!=`.
    pub negated: bool,
}

/// Conjunction of terms; an empty selector matches everything. Clones share the terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Arc<[FieldTerm]>,
    /// One test per field.
    tests: Arc<[FieldTest]>,
}

/// All terms of one field: the time to match does not grow with the number of terms.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldTest {
    field: String,
    /// Required values, each once.
    equal: BTreeSet<String>,
    /// Values that do not match.
    unequal: BTreeSet<String>,
}

impl FieldTest {
    fn matches(&self, value: &str) -> bool {
        let is_equal = match self.equal.len() {
            0 => true,
            1 => self.equal.contains(value),
            _ => false,
        };
        is_equal && !self.unequal.contains(value)
    }
}

/// Error for an invalid selector, with upstream's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidFieldSelector {
    /// Term without an operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    Term {
        /// Complete selector.
        selector: String,
        /// Invalid term.
        term: String,
    },
    /// Backslash before a character other than `\`, `,` or `=`, or at the end.
    #[error("invalid field selector: invalid escape sequence: \\{0}")]
    Escape(String),
    /// Unescaped `,` or `=` in a value.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

impl FieldSelector {
    /// Parses the form of the query parameter.
    ///
    /// # Errors
    /// [`InvalidFieldSelector`], reported with 400.
    pub fn parse(text: &str) -> Result<Self, InvalidFieldSelector> {
        let mut terms = Vec::new();
        let mut raw_terms = split_terms(text);
        // Like Go's sort: of two terms for one field, the smaller text comes first.
        raw_terms.sort_unstable();
        for raw in raw_terms.into_iter().filter(|t| !t.is_empty()) {
            let (field, negated, value) = split_operator(raw).ok_or_else(|| InvalidFieldSelector::Term {
                selector: text.to_owned(),
                term: raw.to_owned(),
            })?;
            let value = unescape(value)?;
            // A term with an empty field and value matches everything (`hasTerm.Transform`).
            if !(field.is_empty() && value.is_empty()) {
                terms.push(FieldTerm { field: field.to_owned(), value, negated });
            }
        }
        Ok(Self::new(terms))
    }

    fn new(terms: Vec<FieldTerm>) -> Self {
        let mut fields: BTreeMap<&str, [BTreeSet<String>; 2]> = BTreeMap::new();
        for term in &terms {
            fields.entry(&term.field).or_default()[usize::from(term.negated)].insert(term.value.clone());
        }
        let test = |(field, [equal, unequal]): (&str, [BTreeSet<String>; 2])| FieldTest {
            field: field.to_owned(),
            equal,
            unequal,
        };
        Self { tests: fields.into_iter().map(test).collect(), terms: terms.into() }
    }

    /// Escapes a value for the query parameter.
    #[must_use]
    pub fn escape(value: &str) -> String {
        let escaped = |c: char| matches!(c, '\\' | ',' | '=').then_some('\\').into_iter().chain([c]);
        value.chars().flat_map(escaped).collect()
    }

    /// Returns the terms, in order.
    #[must_use]
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// True if the selector matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// True if the fields that `get` returns satisfy every term; an unknown field is the empty string.
    pub fn matches<'v>(&self, get: impl Fn(&str) -> Option<&'v str>) -> bool {
        self.tests.iter().all(|test| test.matches(get(&test.field).unwrap_or_default()))
    }

    /// Returns the selector with renamed fields.
    #[must_use]
    pub fn rename_fields(&self, name: impl Fn(&str) -> String) -> Self {
        let rename = |term: &FieldTerm| FieldTerm { field: name(&term.field), ..term.clone() };
        Self::new(self.terms.iter().map(rename).collect())
    }

    /// Returns the value that the selector requires for this field, if any.
    #[must_use]
    pub fn requires_exact_match(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|t| !t.negated && t.field == field).map(|t| t.value.as_str())
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Splits at the first operator; an exclamation mark alone is part of the field.
fn split_operator(term: &str) -> Option<(&str, bool, &str)> {
    let (field, value) = term.split_once('=')?;
    Some(match field.strip_suffix('!') {
        Some(field) => (field, true, value),
        None => (field, false, value.strip_prefix('=').unwrap_or(value)),
    })
}

fn unescape(value: &str) -> Result<String, InvalidFieldSelector> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                other => {
                    return Err(InvalidFieldSelector::Escape(other.map(String::from).unwrap_or_default()));
                }
            },
            ',' | '=' => return Err(InvalidFieldSelector::Unescaped(c)),
            _ => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(field: &str, value: &str, negated: bool) -> FieldTerm {
        FieldTerm { field: field.into(), value: value.into(), negated }
    }

    #[test]
    fn terms_split_on_unescaped_commas_and_operators() {
        let rows = [
            ("", vec![]),
            ("a=b", vec![term("a", "b", false)]),
            ("a==b,c!=d", vec![term("a", "b", false), term("c", "d", true)]),
            (r"a=b\,c\=d\\", vec![term("a", r"b,c=d\", false)]),
            ("a=", vec![term("a", "", false)]),
        ];
        for (text, want) in rows {
            assert_eq!(FieldSelector::parse(text).unwrap().terms(), want, "{text}");
        }
        assert_eq!(FieldSelector::escape(r"b,c=d\"), r"b\,c\=d\\");
        for bad in ["a", r"a=\x", r"a=b\", "a=b=c"] {
            assert!(FieldSelector::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn field_selectors_are_parsed_as_recorded() {
        let rows = include_str!("../../testdata/field_selectors.jsonl").lines();
        let (mut read, mut refused) = (0, 0);
        for row in rows {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            match FieldSelector::parse(row["text"].as_str().unwrap()) {
                Ok(selector) => {
                    let want = row["terms"].as_array().unwrap_or_else(|| panic!("{row}"));
                    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
                    let want: Vec<FieldTerm> = want
                        .iter()
                        .map(|t| term(&text(&t["field"]), &text(&t["value"]), t["operator"] == "!="))
                        .collect();
                    assert_eq!(selector.terms(), want, "{row}");
                    let exact = selector.requires_exact_match("a");
                    assert_eq!(exact, row["exact"].as_str(), "{row}");
                    read += 1;
                }
                Err(error) => {
                    assert_eq!(error.to_string(), row["error"].as_str().unwrap_or("(none)"), "{row}");
                    refused += 1;
                }
            }
        }
        assert!(read > 200 && refused > 100, "{read} read, {refused} refused");
    }

    /// Counts reads of the field instead of measuring time.
    #[test]
    fn a_field_is_read_once_for_all_its_terms() {
        let terms: Vec<String> = (0..2_000).map(|at| format!("metadata.name!=n{at}")).collect();
        let selector = FieldSelector::parse(&terms.join(",")).unwrap();
        for (name, want) in [("other", true), ("n7", false)] {
            let read = std::cell::Cell::new(0);
            let matches = selector.matches(|_| {
                read.set(read.get() + 1);
                Some(name)
            });
            assert_eq!((matches, read.get()), (want, 1), "{name}");
        }
        let selector = FieldSelector::parse("a=b,a=c").unwrap();
        assert!(!selector.matches(|_| Some("b")) && !selector.matches(|_| Some("c")));
    }

    #[test]
    fn a_missing_field_is_the_empty_string() {
        let selector = FieldSelector::parse("a!=b").unwrap();
        assert!(selector.matches(|_| None));
        assert!(!selector.matches(|_| Some("b")));
        assert_eq!(
            FieldSelector::parse("metadata.name=x").unwrap().requires_exact_match("metadata.name"),
            Some("x")
        );
    }
}
