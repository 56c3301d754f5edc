//! Errors of the YAML parser, reworded as those of upstream's parser (go-yaml), which clients know.

use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

use super::limits::TooManyValues;

/// Message for a text that exceeds a limit of aliases.
pub(super) const EXCESSIVE_ALIASING: &str = "document contains excessive aliasing";

const NO_TOKEN: &str = "found character that cannot start any token";
const NO_CONTENT: &str = "did not find expected node content";

/// Parts of scanner errors. Upstream counts the line of all other syntax errors from 0.
const SCANNER_ERRORS: [&str; 3] = ["hexdecimal number", "expected whitespace", "tag handle"];

/// Returns the message for an error in a text.
pub(super) fn error_message(error: &Error, text: &str) -> String {
    match unwrap_alias_errors(error) {
        Error::Budget { breach: BudgetBreach::Nodes { .. }, .. } => return TooManyValues.to_string(),
        Error::AliasReplayLimitExceeded { .. }
        | Error::Budget { breach: BudgetBreach::RecordedAnchorEvents { .. }, .. } => {
            return EXCESSIVE_ALIASING.to_owned();
        }
        _ => {}
    }
    let written = error.to_string();
    let (Some(end), Some(location)) = (written.rfind(" at line "), error.location()) else { return written };
    if written.contains("unknown anchor") {
        let offset = usize::try_from(location.span().offset()).unwrap_or(usize::MAX);
        return format!("unknown anchor '{}' referenced", alias_at(text, offset));
    }
    upstream_message(written[..end].trim_end_matches(','), location.line(), text)
}

/// Returns the inner error if the error occurred during the expansion of an alias.
fn unwrap_alias_errors(mut error: &Error) -> &Error {
    while let Error::AliasError { error: inner, .. } = error {
        error = inner;
    }
    error
}

/// Returns upstream's message for a problem on a line of a text.
fn upstream_message(problem: &str, line: u64, text: &str) -> String {
    let problem = match problem.split_once(", ") {
        Some((context, problem)) if context.starts_with("while ") => problem,
        _ => problem,
    };
    let problem = problem.replace("hexadecimal number", "hexdecimal number");
    if problem.ends_with("expected map or sequence of maps as the value") {
        return "map merge requires map or sequence of maps as the value".to_owned();
    }
    if let Some(bracket) = problem.strip_prefix("unclosed bracket '") {
        return unclosed_bracket(bracket, line, text);
    }
    if problem.starts_with("unexpected character: `") {
        // The parser prints control characters as escapes.
        let is_control = problem.contains("`\\u{");
        return if is_control {
            "control characters are not allowed".to_owned()
        } else {
            with_scanner_line(line, NO_TOKEN)
        };
    }
    if problem.starts_with("tabs disallowed") {
        return with_scanner_line(line, NO_TOKEN);
    }
    if problem == "unclosed quote" {
        return with_scanner_line(line, "found unexpected end of stream");
    }
    let of_grammar =
        problem.starts_with("did not find expected") && !SCANNER_ERRORS.iter().any(|of| problem.contains(of));
    if of_grammar { with_line(line.saturating_sub(1), &problem) } else { with_scanner_line(line, &problem) }
}

/// Returns the name of the alias that starts at this character or before it.
fn alias_at(text: &str, offset: usize) -> String {
    let star = text.chars().take(offset.saturating_add(1)).collect::<String>().rfind('*').unwrap_or(0);
    let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text[star..].chars().skip(1).take_while(is_part).collect()
}

/// Returns the message for a bracket on this line that is not closed before the end of the text.
fn unclosed_bracket(bracket: &str, line: u64, text: &str) -> String {
    let lines = u64::try_from(text.lines().count()).unwrap_or(u64::MAX);
    if text.trim_end().ends_with(['[', '{', ',']) {
        return with_line(lines, NO_CONTENT);
    }
    let close = if bracket.starts_with('{') { '}' } else { ']' };
    with_line(if line > 1 { line - 1 } else { lines }, &format!("did not find expected ',' or '{close}'"))
}

/// Adds the line number. Upstream omits the first line in scanner errors.
fn with_scanner_line(line: u64, problem: &str) -> String {
    with_line(if line == 1 { 0 } else { line }, problem)
}

fn with_line(lines: u64, problem: &str) -> String {
    if lines == 0 { problem.to_owned() } else { format!("line {lines}: {problem}") }
}

#[cfg(test)]
mod tests {
    use super::super::yaml::to_json;

    #[test]
    fn errors_have_upstream_messages() {
        for (text, want) in [
            ("a: b: c", "mapping values are not allowed in this context"),
            ("a: 1\n b: 2", "line 2: mapping values are not allowed in this context"),
            ("\"a", "found unexpected end of stream"),
            ("{\"a\": 1", "line 1: did not find expected ',' or '}'"),
            ("[1", "line 1: did not find expected ',' or ']'"),
            ("a: 1\nb: [", "line 2: did not find expected node content"),
            ("@x", "found character that cannot start any token"),
            ("a:\n\t- b", "line 2: found character that cannot start any token"),
            ("- a\nb: c", "line 1: did not find expected '-' indicator"),
            ("a: &b 1\na: *c", "unknown anchor 'c' referenced"),
            ("\"\\u1", "did not find expected hexdecimal number"),
            ("%", "could not find expected directive name"),
            ("\0", "control characters are not allowed"),
            ("<<: x", "map merge requires map or sequence of maps as the value"),
        ] {
            assert_eq!(to_json(text).unwrap_err(), format!("yaml: {want}"), "{text}");
        }
    }
}
