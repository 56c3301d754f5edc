//! Patterns of strings: regular expressions in RE2 syntax, made when first needed and shared by those who say the same.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};

/// The most bytes that a compiled pattern may take, each of its parts.
const MAX_COMPILED_BYTES: usize = 1024 * 1024;

/// The most bytes that matching may keep to go faster.
const MAX_CACHE_BYTES: usize = 256 * 1024;

/// A pattern.
pub struct Pattern {
    text: Box<str>,
    regex: OnceLock<Result<Regex, Box<str>>>,
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

    /// Whether it is found in a string.
    ///
    /// # Errors
    /// Why it is no pattern, or one that is too large.
    pub fn is_match(&self, text: &str) -> Result<bool, &str> {
        let regex = self.regex.get_or_init(|| compile(&self.text));
        regex.as_ref().map(|regex| regex.is_match(text)).map_err(|error| &**error)
    }
}

fn compile(text: &str) -> Result<Regex, Box<str>> {
    RegexBuilder::new(text)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_CACHE_BYTES)
        .build()
        .map_err(|error| error.to_string().into())
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
