//! Reads calls of macros and attributes: their line, their name, their arguments, and the format string among them.

use crate::source;

/// One call, such as `warn!(%error, "cannot read the file")`.
pub struct Call<'a> {
    pub line: usize,
    pub name: &'a str,
    pub arguments: Vec<String>,
}

impl Call<'_> {
    /// Position of the first string literal.
    fn position(&self) -> Option<usize> {
        self.arguments.iter().position(|argument| argument.starts_with('"'))
    }

    /// The format string, unescaped.
    pub fn text(&self) -> Option<String> {
        self.position().map(|at| unescaped(&self.arguments[at]))
    }

    /// Arguments in front of the format string: the fields of a log line.
    pub fn fields(&self) -> &[String] {
        &self.arguments[..self.position().unwrap_or(self.arguments.len())]
    }
}

/// Calls in the program part of a file. `names` include the opening characters without the parenthesis: `warn!`, `#[error`.
pub fn calls<'a>(text: &str, names: &[&'a str]) -> Vec<Call<'a>> {
    let (mut code, mut starts) = (String::new(), Vec::new());
    for (number, line) in source::program(text) {
        starts.push((code.len(), number));
        code.push_str(&line);
        code.push('\n');
    }
    let line_at = |at: usize| starts[starts.partition_point(|(start, _)| *start <= at) - 1].1;
    let mut calls = Vec::new();
    for name in names {
        let opening = format!("{name}(");
        for (at, _) in code.match_indices(&opening) {
            if !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                let arguments = arguments(&code[at + opening.len()..]);
                calls.push(Call { line: line_at(at), name, arguments });
            }
        }
    }
    calls.sort_by_key(|call| call.line);
    calls
}

/// Splits at commas outside strings and parentheses, up to the closing parenthesis.
fn arguments(rest: &str) -> Vec<String> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut arguments = Vec::new();
    let mut argument = String::new();
    for c in rest.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(std::mem::take(&mut argument));
                continue;
            }
            _ => {}
        }
        argument.push(c);
    }
    arguments.push(argument);
    arguments
        .iter()
        .map(|argument| argument.trim().to_owned())
        .filter(|argument| !argument.is_empty())
        .collect()
}

/// The content of a string literal, with continued lines joined.
fn unescaped(literal: &str) -> String {
    let mut text = String::new();
    let mut chars = literal.trim_matches('"').chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) => while chars.next_if(|c| c.is_whitespace()).is_some() {},
            ('\\', Some(_)) => text.extend(chars.next()),
            _ => text.push(c),
        }
    }
    text
}

/// Text without placeholders, and the placeholders without braces.
pub fn placeholders(text: &str) -> (String, Vec<&str>) {
    let (mut plain, mut found) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        plain.push_str(before);
        if let Some(literal) = after.strip_prefix('{') {
            rest = literal;
            continue;
        }
        let (placeholder, end) = after.split_once('}').unwrap_or((after, ""));
        found.push(placeholder);
        rest = end;
    }
    (plain + rest, found)
}

#[test]
fn calls_are_read_with_their_lines_and_arguments() {
    let text = "fn a() {\n    tracing::warn!(\n        path = %path.display(), // comment\n        error = f(a, \")\"),\n        \"cannot read \\\n         \\\"{path}\\\", skipped: {}\",\n        b\n    );\n    xwarn!(\"c\");\n    // warn!(\"d\");\n}\n#[error(\"x {0}\")]\nstruct B;\n";
    let found = calls(text, &["warn!", "#[error"]);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].line, found[0].name, found[1].line), (2, "warn!", 12));
    assert_eq!(found[0].fields(), ["path = %path.display()", "error = f(a, \")\")"]);
    assert_eq!(found[0].text().as_deref(), Some("cannot read \"{path}\", skipped: {}"));
}

#[test]
fn placeholders_are_no_text() {
    assert_eq!(placeholders("a {x:?} {{b}} {}"), ("a  b}} ".to_owned(), vec!["x:?", ""]));
}
