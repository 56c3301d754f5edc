//! Classes of characters: `[a-z]`, `[[:alpha:]]`, `\p{Greek}`.

use std::fmt::Write as _;

use super::error::{Code, Error};
use super::escape::perl_class;
use super::parse::Parser;

/// Names of POSIX classes.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];
/// Class without characters.
const EMPTY_CLASS: &str = r"[^\x00-\x{10FFFF}]";

impl Parser<'_> {
    /// Parses a class in brackets.
    pub(super) fn class(&mut self) -> Result<(), Error> {
        let class_text = self.rest();
        self.skip(1);
        let negated = self.peek() == Some('^');
        if negated {
            self.skip(1);
        }
        let mut class = String::from(if negated { "[^" } else { "[" });
        let mut first = true;
        // A leading bracket is literal.
        while first || self.peek() != Some(']') {
            first = false;
            self.class_item(&mut class, class_text)?;
        }
        self.skip(1);
        class.push(']');
        self.out.push_str(&class);
        Ok(())
    }

    fn class_item(&mut self, class: &mut String, class_text: &str) -> Result<(), Error> {
        if let Some(name) = self.posix()? {
            class.push_str(name);
            return Ok(());
        }
        if self.rest().starts_with(r"\p") || self.rest().starts_with(r"\P") {
            class.push_str(&self.unicode_class()?);
            return Ok(());
        }
        let escaped = self.rest().strip_prefix('\\').and_then(|rest| rest.chars().next());
        if let Some((perl, negated)) = escaped.and_then(perl_class) {
            self.skip(2);
            let not = if negated { "^" } else { "" };
            write!(class, "[{not}{perl}]").unwrap_or_default();
            return Ok(());
        }
        let start = self.position();
        let low = self.class_character(class_text)?;
        let mut high = low;
        let mut following = self.rest().chars();
        if following.next() == Some('-') && following.next().is_some_and(|next| next != ']') {
            self.skip(1);
            high = self.class_character(class_text)?;
            if high < low {
                return Err(Error::new(Code::CharacterRange, self.text_since(start)));
            }
        }
        push_range(class, low, high);
        Ok(())
    }

    fn class_character(&mut self, class_text: &str) -> Result<u32, Error> {
        if self.peek() == Some('\\') {
            return self.escaped_character();
        }
        self.take().map(u32::from).ok_or_else(|| Error::new(Code::MissingBracket, class_text))
    }

    /// Parses `[:alpha:]`, which has the same syntax in the `regex` crate.
    fn posix(&mut self) -> Result<Option<&str>, Error> {
        let rest = self.rest();
        let Some(after) = rest.strip_prefix("[:") else { return Ok(None) };
        let Some(end) = after.find(":]") else { return Ok(None) };
        let name = &rest[..end + 4];
        let bare = after[..end].strip_prefix('^').unwrap_or(&after[..end]);
        if !POSIX.contains(&bare) {
            return Err(Error::new(Code::CharacterRange, name));
        }
        self.skip(name.len());
        Ok(Some(name))
    }

    /// Parses `\pL`, `\p{Greek}` or `\P{^Lu}`: Unicode categories and scripts. Returns the syntax of the `regex` crate.
    pub(super) fn unicode_class(&mut self) -> Result<String, Error> {
        let rest = self.rest();
        let mut negated = rest.starts_with(r"\P");
        let range_error = |part: &str| Error::new(Code::CharacterRange, part);
        let name = match rest[2..].chars().next() {
            None => return Err(range_error(rest)),
            Some('{') => {
                let end = rest.find('}').ok_or_else(|| range_error(rest))?;
                self.skip(end + 1);
                &rest[3..end]
            }
            Some(letter) => {
                self.skip(2 + letter.len_utf8());
                &rest[2..2 + letter.len_utf8()]
            }
        };
        let sequence = &rest[..rest.len() - self.rest().len()];
        let bare = name.strip_prefix('^').unwrap_or(name);
        negated ^= bare.len() < name.len();
        let property = self.property(bare).ok_or_else(|| range_error(sequence))?;
        Ok(format!("\\{}{{{property}}}", if negated { 'P' } else { 'p' }))
    }

    /// Returns the engine's name of a category or script. Slow: call it once for each name.
    fn property(&mut self, name: &str) -> Option<String> {
        if let Some((_, property)) = self.properties.iter().find(|(cached, _)| cached == name) {
            return Some(property.clone());
        }
        let property = property(name)?;
        self.properties.push((name.to_owned(), property.clone()));
        Some(property)
    }
}

/// Returns the engine's name of a category or script, if it exists.
fn property(name: &str) -> Option<String> {
    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' '));
    if name.is_empty() || !letters {
        return None;
    }
    if matches!(name.to_ascii_lowercase().as_str(), "any" | "assigned" | "ascii") {
        return Some(name.to_owned());
    }
    let exists = |property: &String| regex::Regex::new(&format!(r"\p{{{property}}}")).is_ok();
    [format!("gc={name}"), format!("sc={name}")].into_iter().find(exists)
}

/// Appends a range of codes without surrogates, which are not characters.
fn push_range(class: &mut String, low: u32, high: u32) {
    let low = if (0xd800..0xe000).contains(&low) { 0xe000 } else { low };
    let high = if (0xd800..0xe000).contains(&high) { 0xd7ff } else { high };
    if low > high {
        class.push_str(EMPTY_CLASS);
        return;
    }
    write!(class, r"\x{{{low:X}}}").unwrap_or_default();
    if high > low {
        write!(class, r"-\x{{{high:X}}}").unwrap_or_default();
    }
}
