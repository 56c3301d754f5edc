//! Finds calls of macros and attributes: line, name, arguments, and the format string among them.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::LitStr;

/// One call, such as `warn!(%error, "cannot read the file")`.
pub struct Call {
    pub line: usize,
    /// Name with the characters that open the call: `warn!`, `#[error`.
    pub name: String,
    /// Source text of each argument.
    pub arguments: Vec<String>,
}

impl Call {
    /// Position and value of the first string literal.
    fn literal(&self) -> Option<(usize, String)> {
        let value = |text: &String| Some(syn::parse_str::<LitStr>(text).ok()?.value());
        self.arguments.iter().enumerate().find_map(|(at, argument)| Some((at, value(argument)?)))
    }

    /// The format string.
    pub fn text(&self) -> Option<String> {
        self.literal().map(|(_, value)| value)
    }

    /// Arguments in front of the format string: the fields of a log line.
    pub fn fields(&self) -> &[String] {
        &self.arguments[..self.literal().map_or(self.arguments.len(), |(at, _)| at)]
    }
}

/// Finds the calls with these names in Rust source, also inside other macros, but not in test items.
pub fn calls(source: &str, names: &[&str]) -> Vec<Call> {
    let tokens: TokenStream = source.parse().expect("the file is Rust");
    let mut calls = Vec::new();
    collect(tokens, false, names, &mut calls);
    calls
}

fn collect(tokens: TokenStream, in_attribute: bool, names: &[&str], calls: &mut Vec<Call>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        let TokenTree::Group(group) = token else { continue };
        let before = &tokens[..at - 1];
        let is_attribute = group.delimiter() == Delimiter::Bracket && ends_with(before, '#');
        if is_attribute && is_for_tests(group) {
            at = end_of_item(&tokens, at);
            continue;
        }
        if let Some(name) = name_of_call(before, in_attribute).filter(|name| names.contains(&name.as_str())) {
            let line = before.last().map_or(0, |token| token.span().start().line);
            calls.push(Call { line, name, arguments: arguments(group) });
        }
        collect(group.stream(), is_attribute, names, calls);
    }
}

fn ends_with(tokens: &[TokenTree], punctuation: char) -> bool {
    matches!(tokens.last(), Some(TokenTree::Punct(last)) if last.as_char() == punctuation)
}

fn is_for_tests(attribute: &Group) -> bool {
    let text = attribute.stream().to_string().replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// Position behind the item: behind its block or semicolon, or behind the comma of a field.
fn end_of_item(tokens: &[TokenTree], start: usize) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punctuation) => matches!(punctuation.as_char(), ';' | ','),
        _ => false,
    };
    tokens[start..].iter().position(ends).map_or(tokens.len(), |found| start + found + 1)
}

/// Name of the call whose arguments follow these tokens.
fn name_of_call(before: &[TokenTree], in_attribute: bool) -> Option<String> {
    match before {
        [TokenTree::Ident(name)] if in_attribute => Some(format!("#[{name}")),
        [.., TokenTree::Ident(name), TokenTree::Punct(_)] if ends_with(before, '!') => {
            Some(format!("{name}!"))
        }
        _ => None,
    }
}

/// Splits at commas outside of groups.
fn arguments(group: &Group) -> Vec<String> {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
    let text = |tokens: &[TokenTree]| {
        let (first, last) = (tokens.first()?.span(), tokens.last()?.span());
        first.join(last)?.source_text()
    };
    tokens.split(is_comma).filter_map(text).collect()
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
    assert_eq!((found[0].line, found[0].name.as_str(), found[1].line), (2, "warn!", 12));
    assert_eq!(found[0].fields(), ["path = %path.display()", "error = f(a, \")\")"]);
    assert_eq!(found[0].text().as_deref(), Some("cannot read \"{path}\", skipped: {}"));
}

#[test]
fn calls_in_macros_are_found_and_those_in_tests_are_not() {
    let text = "fn a() { select! { x = y => warn!(c = '\"', r\"a\\b\") } }\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests { fn b() { warn!(\"t\") } }\nstruct C { #[cfg(test)] d: Vec<u8>, e: () }\n#[cfg(all(test, unix))]\nuse x::{warn, y};\nfn f() { warn!(\"g\") }\n";
    let found = calls(text, &["warn!"]);
    let texts: Vec<Option<String>> = found.iter().map(Call::text).collect();
    assert_eq!(texts, [Some("a\\b".to_owned()), Some("g".to_owned())]);
    assert_eq!(found[0].fields(), ["c = '\"'"]);
}

#[test]
fn placeholders_are_separated_from_the_text() {
    assert_eq!(placeholders("a {x:?} {{b}} {}"), ("a  b}} ".to_owned(), vec!["x:?", ""]));
}
