//! The text of an expression: where in it things stand, and how complaints about it are printed.

use std::fmt::Write as _;

/// The longest line that is shown under a complaint.
const LONGEST_SNIPPET: usize = 16_384;
/// The most complaints that are shown.
const MOST_ISSUES: usize = 100;

/// A complaint about an expression, at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Byte offset in the text; None for the expression as a whole.
    pub offset: Option<usize>,
    /// What is wrong, in cel-go's words.
    pub message: String,
}

impl Issue {
    /// A complaint at a byte offset.
    pub fn at(offset: usize, message: impl Into<String>) -> Self {
        Self { offset: Some(offset), message: message.into() }
    }

    /// A complaint about the whole.
    pub fn whole(message: impl Into<String>) -> Self {
        Self { offset: None, message: message.into() }
    }
}

/// Complaints as cel-go prints them, each with its line and a mark under it, in the order of their places:
/// `ERROR: <input>:1:5: undefined field 'x'\n | self.x\n | ....^`.
#[must_use]
pub fn print_issues(text: &str, issues: &[Issue]) -> String {
    let mut sorted: Vec<&Issue> = issues.iter().take(MOST_ISSUES).collect();
    sorted.sort_by_key(|issue| issue.offset.map_or(0, |offset| offset + 1));
    let mut printed: Vec<String> = sorted.into_iter().map(|issue| print_issue(text, issue)).collect();
    if issues.len() > MOST_ISSUES {
        printed.push(format!("{} more errors were truncated", issues.len() - MOST_ISSUES));
    }
    printed.join("\n")
}

fn print_issue(text: &str, issue: &Issue) -> String {
    let Some(offset) = issue.offset else { return format!("ERROR: <input>:-1:0: {}", issue.message) };
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.matches('\n').count() + 1;
    let lead = &before[start..];
    let mut printed = format!("ERROR: <input>:{line}:{}: {}", lead.chars().count() + 1, issue.message);
    let snippet = text[start..].split('\n').next().unwrap_or_default();
    if text.is_empty() || snippet.len() > LONGEST_SNIPPET {
        return printed;
    }
    let _ = write!(printed, "\n | {}\n | ", snippet.replace('\t', " "));
    printed.extend(lead.chars().map(|c| if c.is_ascii() { '.' } else { '\u{ff0e}' }));
    let wide = text.get(offset..).and_then(|rest| rest.chars().next()).is_some_and(|c| !c.is_ascii());
    printed.push(if wide { '\u{ff3e}' } else { '^' });
    printed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_show_their_line_and_place() {
        let issues = [Issue::at(10, "second"), Issue::at(4, "first")];
        assert_eq!(
            print_issues("self.x\n  + y", &issues),
            "ERROR: <input>:1:5: first\n | self.x\n | ....^\nERROR: <input>:2:4: second\n |   + y\n | ...^"
        );
    }
}
