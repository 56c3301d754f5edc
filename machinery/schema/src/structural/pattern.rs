//! Patterns of strings: regular expressions in RE2 syntax, compiled when first used. Equal patterns share the compiled form.

use std::sync::{Arc, OnceLock};

use portico_cel::PatternError;
use regex::Regex;

use super::languages;

/// Pattern with a limit for the size of its compiled form.
pub struct Pattern {
    text: Box<str>,
    regex: OnceLock<Result<Arc<Regex>, PatternError>>,
}

impl Pattern {
    /// Returns a pattern without checking its syntax.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), regex: OnceLock::new() }
    }

    /// Returns the source text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    #[cfg(test)]
    pub(super) fn is_compiled(&self) -> bool {
        self.regex.get().is_some()
    }

    /// Returns true if the pattern is found in a string.
    ///
    /// # Errors
    /// The pattern has a syntax error or is too large.
    pub fn is_match(&self, text: &str) -> Result<bool, &PatternError> {
        let regex = self.regex.get_or_init(|| languages::patterns().compile(&self.text));
        regex.as_ref().map(|regex| regex.is_match(text))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pattern").field(&self.text).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_like_re2() {
        for (pattern, text, found) in
            [("b+", "abc", true), ("^b", "abc", false), (r"^\d$", "\u{663}", false), ("[a&&b]", "&", true)]
        {
            assert_eq!(Pattern::new(pattern).is_match(text), Ok(found), "{pattern}");
        }
        assert!(Pattern::new("(?=a)").is_match("a").is_err());
    }
}
