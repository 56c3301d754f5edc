//! JSON as YAML in flow style.

use super::outline::Tokens;
use super::scalar::{is_simple, plain, string};
use super::text::double_quoted;

/// Writes valid JSON on one line; strings are quoted, as in JSON.
pub(super) fn flow(json: &str, out: &mut String) -> Option<()> {
    let mut tokens = Tokens::new(json).peekable();
    while let Some((_, token)) = tokens.next() {
        match token.as_bytes() {
            b":" => out.push_str(": "),
            b"{" | b"}" | b"[" | b"]" | b"," => out.push_str(token),
            [b'"', ..] => {
                let value = string(token)?;
                let is_key = tokens.peek().is_some_and(|(_, next)| *next == ":");
                if is_key && !is_simple(&value) {
                    out.push_str("? ");
                }
                double_quoted(&value, out);
            }
            _ => plain(token, out),
        }
    }
    Some(())
}
