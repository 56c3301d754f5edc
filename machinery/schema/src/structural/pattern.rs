//! Patterns of strings: regular expressions in RE2 syntax, made when first needed and shared by those who say the same.

use std::sync::{Arc, OnceLock};

use portico_cel::re2;
use regex::Regex;

/// A pattern. What it takes once it is made is bounded, as [`re2`] bounds it.
pub struct Pattern {
    text: Box<str>,
    regex: OnceLock<Result<Arc<Regex>, Box<str>>>,
}

impl Pattern {
    /// A pattern; nothing is looked at yet.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), regex: OnceLock::new() }
    }

    /// As it is written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    #[cfg(test)]
    pub(super) fn is_compiled(&self) -> bool {
        self.regex.get().is_some()
    }

    /// Whether it is found in a string.
    ///
    /// # Errors
    /// Why it is no pattern, or one that is too large.
    pub fn is_match(&self, text: &str) -> Result<bool, &str> {
        let regex = self.regex.get_or_init(|| re2::compile(&self.text).map_err(Into::into));
        regex.as_ref().map(|regex| regex.is_match(text)).map_err(|error| &**error)
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
    fn patterns_are_searched_for_and_mean_what_re2_means() {
        for (pattern, text, found) in
            [("b+", "abc", true), ("^b", "abc", false), (r"^\d$", "\u{663}", false), ("[a&&b]", "&", true)]
        {
            assert_eq!(Pattern::new(pattern).is_match(text), Ok(found), "{pattern}");
        }
        assert!(Pattern::new("(?=a)").is_match("a").is_err());
    }
}
