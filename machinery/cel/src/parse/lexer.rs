//! Lexer: splits an expression into tokens.

use crate::diagnostics::Issue;

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// End of the text.
    End,
    /// Punctuation and operators, by their spelling.
    Mark(&'static str),
    True,
    False,
    Null,
    In,
    Int,
    Uint,
    Float,
    Text,
    Bytes,
    Ident,
    /// A name between backticks.
    Escaped,
}

impl Token {
    pub fn display_name(self) -> &'static str {
        match self {
            Self::End => "<EOF>",
            Self::Mark(mark) => quoted_mark(mark),
            Self::True => "'true'",
            Self::False => "'false'",
            Self::Null => "'null'",
            Self::In => "'in'",
            Self::Int => "NUM_INT",
            Self::Uint => "NUM_UINT",
            Self::Float => "NUM_FLOAT",
            Self::Text => "STRING",
            Self::Bytes => "BYTES",
            Self::Ident => "IDENTIFIER",
            Self::Escaped => "ESC_IDENTIFIER",
        }
    }
}

fn quoted_mark(mark: &'static str) -> &'static str {
    match mark {
        ")" => "')'",
        "]" => "']'",
        "}" => "'}'",
        ":" => "':'",
        other => other,
    }
}

/// Maximum number of invalid texts that are reported.
const MAX_ISSUES: usize = 100;

/// Token with its byte range.
#[derive(Clone, Copy, Debug)]
pub(super) struct LexedToken {
    pub token: Token,
    pub start: usize,
    pub end: usize,
}

/// Punctuation, longest first, so that `<=` is not parsed as `<`.
const PUNCTUATION: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":",
    "+", "*", "/", "%", "=",
];

/// Splits a text into tokens. Invalid characters are reported and skipped.
pub(super) fn lex(text: &str) -> (Vec<LexedToken>, Vec<Issue>) {
    let (mut tokens, mut issues) = (Vec::new(), Vec::new());
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        let rest = &text[start..];
        if matches!(first, '\t' | ' ' | '\r' | '\n' | '\u{c}') {
            start += 1;
        } else if rest.starts_with("//") {
            start += rest.find('\n').unwrap_or(rest.len());
        } else if let Some((token, length)) = token(rest) {
            tokens.push(LexedToken { token, start, end: start + length });
            start += length;
        } else {
            let input = unrecognized(rest);
            if issues.len() < MAX_ISSUES {
                let text = format!("Syntax error: token recognition error at: '{input}'");
                issues.push(Issue::at(start, text));
            }
            start += input.len();
        }
    }
    (tokens, issues)
}

/// Returns the text that upstream reports as unrecognized: up to the first character that no token can have at that position.
fn unrecognized(rest: &str) -> &str {
    let fine = match rest.as_bytes().first() {
        Some(quote @ (b'"' | b'\'')) => 1 + valid_string_prefix(&rest[1..], char::from(*quote)),
        Some(b'=' | b'&' | b'|') => 1,
        Some(b'`') => 1 + rest[1..].find(|c| !is_in_escaped(c)).unwrap_or(rest.len() - 1),
        _ => 0,
    };
    let end = rest[fine..].chars().next().map_or(rest.len(), |c| fine + c.len_utf8());
    &rest[..end]
}

/// Returns the length of the valid content of a short string without a closing quote.
fn valid_string_prefix(body: &str, quote: char) -> usize {
    let mut position = 0;
    while let Some(next) =
        body[position..].chars().next().filter(|c| *c != quote && !matches!(c, '\n' | '\r'))
    {
        if next != '\\' {
            position += next.len_utf8();
            continue;
        }
        let rest = &body[position + 1..];
        let Some(length) = escape(rest) else {
            let digits = |more: fn(&u8) -> bool| 1 + rest.bytes().skip(1).take_while(more).count();
            return position
                + 1
                + match rest.as_bytes().first() {
                    Some(b'x' | b'X' | b'u' | b'U') => digits(u8::is_ascii_hexdigit),
                    Some(b'0'..=b'3') => digits(|digit| (b'0'..=b'7').contains(digit)),
                    _ => 0,
                };
        };
        position += 1 + length;
    }
    position
}

/// True if a character is allowed between backticks.
fn is_in_escaped(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' ')
}

fn token(rest: &str) -> Option<(Token, usize)> {
    let first = rest.chars().next()?;
    if let Some(found) = quoted_token(rest) {
        return Some(found);
    }
    if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
        return Some(number(rest));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let token = match &rest[..length] {
            "true" => Token::True,
            "false" => Token::False,
            "null" => Token::Null,
            "in" => Token::In,
            _ => Token::Ident,
        };
        return Some((token, length));
    }
    if first == '`' {
        let length = rest[1..].find('`')?;
        let inner = &rest[1..=length];
        let fine = !inner.is_empty() && inner.chars().all(is_in_escaped);
        return fine.then_some((Token::Escaped, length + 2));
    }
    let mark = PUNCTUATION.iter().find(|mark| rest.starts_with(**mark))?;
    (*mark != "=").then_some((Token::Mark(mark), mark.len()))
}

/// Parses a string or bytes literal with its prefixes, if one starts here.
fn quoted_token(rest: &str) -> Option<(Token, usize)> {
    let (mut body, mut token, mut prefix) = (rest, Token::Text, 0);
    if body.starts_with(['b', 'B']) {
        (body, token, prefix) = (&body[1..], Token::Bytes, 1);
    }
    let raw = body.starts_with(['r', 'R']);
    if raw {
        (body, prefix) = (&body[1..], prefix + 1);
    }
    let length = string(body, raw)?;
    Some((token, prefix + length))
}

/// Returns the length of a quoted string at the start of a text.
fn string(body: &str, raw: bool) -> Option<usize> {
    let quote = if body.starts_with('"') {
        "\""
    } else if body.starts_with('\'') {
        "'"
    } else {
        return None;
    };
    let triple = quote.repeat(3);
    if body.starts_with(&triple)
        && let Some(length) = string_until(&body[3..], &triple, raw, true)
    {
        return Some(length + 6);
    }
    string_until(&body[1..], quote, raw, false).map(|length| length + 2)
}

/// Returns the bytes before the closing quote; `None` for invalid escapes, line ends in short strings, and missing quotes.
fn string_until(body: &str, quote: &str, raw: bool, lines: bool) -> Option<usize> {
    let mut position = 0;
    loop {
        let rest = &body[position..];
        if rest.starts_with(quote) {
            return Some(position);
        }
        let next = rest.chars().next()?;
        if matches!(next, '\n' | '\r') && !lines {
            return None;
        }
        position += if next == '\\' && !raw { escape(&rest[1..])? + 1 } else { next.len_utf8() };
    }
}

/// Returns the length of an escape after its backslash.
fn escape(rest: &str) -> Option<usize> {
    let hex = |count: usize| {
        let digits = rest.as_bytes().get(1..=count)?;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(count + 1)
    };
    match rest.chars().next()? {
        'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`' => Some(1),
        'x' | 'X' => hex(2),
        'u' => hex(4),
        'U' => hex(8),
        '0'..='3' => {
            let digits = rest.as_bytes().get(1..3)?;
            digits.iter().all(|digit| (b'0'..=b'7').contains(digit)).then_some(3)
        }
        _ => None,
    }
}

fn number(rest: &str) -> (Token, usize) {
    let digits = |from: usize| rest[from..].bytes().take_while(u8::is_ascii_digit).count();
    if let Some(hex) = rest.strip_prefix("0x") {
        let count = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
        if count > 0 {
            return unsigned(rest, 2 + count);
        }
    }
    let integer_end = digits(0);
    let mut end = integer_end;
    if rest[end..].starts_with('.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if let Some(exponent) = rest[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let count = digits(end + 1 + sign);
        if count > 0 {
            end += 1 + sign + count;
        }
    }
    if end > integer_end { (Token::Float, end) } else { unsigned(rest, integer_end) }
}

fn unsigned(rest: &str, length: usize) -> (Token, usize) {
    if rest[length..].starts_with(['u', 'U']) { (Token::Uint, length + 1) } else { (Token::Int, length) }
}
