//! Errors in an expression with their positions, as data and as cel-go prints them.

use std::fmt::{self, Write as _};

/// Maximum length of a line that is printed with a diagnostic.
const MAX_SNIPPET: usize = 16_384;
/// Maximum number of diagnostics of an expression.
pub const MAX_DIAGNOSTICS: usize = 100;

/// An error found by a stage of compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    /// Byte offset in the text; `None` for the expression as a whole.
    pub offset: Option<usize>,
    /// Message of cel-go.
    pub message: String,
}

impl Issue {
    /// Returns an issue at a byte offset.
    pub fn at(offset: usize, message: impl Into<String>) -> Self {
        Self { offset: Some(offset), message: message.into() }
    }

    /// Returns an issue of the whole expression.
    pub fn without_position(message: impl Into<String>) -> Self {
        Self { offset: None, message: message.into() }
    }
}

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Byte offset in the text; `None` for the expression as a whole.
    pub offset: Option<usize>,
    /// Line, starting at 1; `None` for the expression as a whole.
    pub line: Option<usize>,
    /// Column in characters, starting at 1 (0 for an empty text); `None` for the expression as a whole.
    pub column: Option<usize>,
    /// Message of cel-go.
    pub message: String,
}

/// All errors in an expression, in the order of the text. Displayed as cel-go prints them, with the line and a marker:
/// `ERROR: <input>:1:5: undefined field 'x'\n | self.x\n | ....^`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    text: String,
    diagnostics: Vec<Diagnostic>,
    truncated: usize,
}

impl Diagnostics {
    pub(crate) fn new(text: &str, mut issues: Vec<Issue>) -> Self {
        let truncated = issues.len().saturating_sub(MAX_DIAGNOSTICS);
        issues.truncate(MAX_DIAGNOSTICS);
        issues.sort_by_key(|issue| issue.offset.map_or(0, |offset| offset + 1));
        let diagnostics = issues.into_iter().map(|issue| Diagnostic::new(text, issue)).collect();
        Self { text: text.to_owned(), diagnostics, truncated }
    }

    /// Returns the diagnostics, up to [`MAX_DIAGNOSTICS`].
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.diagnostics.iter()
    }

    /// Returns the number of further diagnostics that were dropped.
    #[must_use]
    pub fn truncated(&self) -> usize {
        self.truncated
    }
}

impl<'d> IntoIterator for &'d Diagnostics {
    type Item = &'d Diagnostic;
    type IntoIter = std::slice::Iter<'d, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Diagnostic {
    fn new(text: &str, Issue { offset, message }: Issue) -> Self {
        let before = offset.map(|offset| text.get(..offset).unwrap_or(text));
        let line = before.map(|before| before.matches('\n').count() + 1);
        // cel-go reports column 0 for an empty text.
        let first = usize::from(!text.is_empty());
        let column = before.map(|before| before[line_start(before)..].chars().count() + first);
        Self { offset, line, column, message }
    }

    fn print(&self, text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let Some(offset) = self.offset else { return Ok(()) };
        let before = text.get(..offset).unwrap_or(text);
        let start = line_start(before);
        let snippet = text[start..].split('\n').next().unwrap_or_default();
        if text.is_empty() || snippet.len() > MAX_SNIPPET {
            return Ok(());
        }
        write!(f, "\n | {}\n | ", snippet.replace('\t', " "))?;
        for character in before[start..].chars() {
            f.write_char(if character.is_ascii() { '.' } else { '\u{ff0e}' })?;
        }
        let wide = text.get(offset..).and_then(|rest| rest.chars().next()).is_some_and(|c| !c.is_ascii());
        f.write_char(if wide { '\u{ff3e}' } else { '^' })
    }
}

/// Returns the offset of the last line.
fn line_start(before: &str) -> usize {
    before.rfind('\n').map_or(0, |end| end + 1)
}

/// One line: `ERROR: <input>:1:5: undefined field 'x'`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, "ERROR: <input>:{line}:{column}: {}", self.message),
            _ => write!(f, "ERROR: <input>:-1:0: {}", self.message),
        }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.diagnostics.iter().enumerate() {
            if index > 0 {
                f.write_char('\n')?;
            }
            diagnostic.print(&self.text, f)?;
        }
        if self.truncated > 0 {
            write!(f, "\n{} more errors were truncated", self.truncated)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostics_show_their_line_and_column() {
        let issues = vec![Issue::at(10, "second"), Issue::at(4, "first")];
        let diagnostics = Diagnostics::new("self.x\n  + y", issues);
        assert_eq!(
            diagnostics.to_string(),
            "ERROR: <input>:1:5: first\n | self.x\n | ....^\nERROR: <input>:2:4: second\n |   + y\n | ...^"
        );
        let places: Vec<_> = diagnostics.iter().map(|d| (d.offset, d.line, d.column)).collect();
        assert_eq!(places, [(Some(4), Some(1), Some(5)), (Some(10), Some(2), Some(4))]);
    }

    #[test]
    fn diagnostics_without_position_come_first_and_truncated_ones_are_counted() {
        let mut issues: Vec<Issue> = (0..MAX_DIAGNOSTICS + 4).map(|_| Issue::at(0, "again")).collect();
        issues[3] = Issue::without_position("too large");
        let diagnostics = Diagnostics::new("x", issues);
        let printed = diagnostics.to_string();
        assert!(
            printed.starts_with("ERROR: <input>:-1:0: too large\nERROR: <input>:1:1: again\n | x\n | ^\n")
        );
        assert!(printed.ends_with("\n4 more errors were truncated"), "{printed}");
        assert_eq!((diagnostics.iter().count(), diagnostics.truncated()), (MAX_DIAGNOSTICS, 4));
    }
}
