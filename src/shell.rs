//! Quotes text for POSIX shells, in commands that users copy.

use std::borrow::Cow;

/// Encloses a text in single quotes.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r#"'"'"'"#))
}

/// Quotes a text if a shell would split or expand it.
pub(crate) fn quote_if_needed(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+-,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { Cow::Borrowed(text) } else { quote(text).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shell_would_split_or_expand_is_quoted() {
        for plain in ["portico-data/certs/admin.crt", "127.0.0.1:6443", "/a/b_c-d.e"] {
            assert_eq!(quote_if_needed(plain), plain);
        }
        for (text, shown) in
            [("dä ta", "'dä ta'"), ("", "''"), ("$HOME", "'$HOME'"), ("it's", r#"'it'"'"'s'"#)]
        {
            assert_eq!(quote_if_needed(text), shown);
        }
    }
}
