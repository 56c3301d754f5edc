//! Package `strconv`: quoted strings (`strconv.Quote`, `%q`).
//!
//! ```
//! assert_eq!(portico_gostd::strconv::quote("a\tb \u{7}"), r#""a\tb \a""#);
//! ```

use std::fmt::Write as _;

/// Returns a string in double quotes, with unprintable characters escaped (`strconv.Quote`).
#[must_use]
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    text.chars().for_each(|character| push_escaped(&mut quoted, character));
    quoted.push('"');
    quoted
}

fn push_escaped(quoted: &mut String, character: char) {
    let escape = match character {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        ' '..='~' => return quoted.push(character),
        c if is_printable(c) => return quoted.push(c),
        c => {
            let code = u32::from(c);
            let result = match code {
                0..0x80 => write!(quoted, "\\x{code:02x}"),
                0x80..0x1_0000 => write!(quoted, "\\u{code:04x}"),
                _ => write!(quoted, "\\U{code:08x}"),
            };
            return result.unwrap_or_default();
        }
    };
    quoted.push_str(escape);
}

/// True if a character beyond ASCII is a letter, mark, number, punctuation or symbol. Derived from Rust's debug escapes of the
/// character after another one, because Rust escapes a leading mark.
fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return false;
    }
    let mut sample = String::from("a");
    sample.push(character);
    sample.escape_debug().nth(1) != Some('\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_as_go_quotes_it() {
        let cases = [
            ("plain 'x'", "\"plain 'x'\""),
            ("a\"b\\", r#""a\"b\\""#),
            ("\u{7}\u{8}\u{c}\n\r\t\u{b}", r#""\a\b\f\n\r\t\v""#),
            ("\u{1}\u{7f}\u{80}", r#""\x01\x7f\u0080""#),
            ("é世\u{301}\u{1f600}", "\"é世\u{301}\u{1f600}\""),
            ("\u{200b}\u{a0}\u{e0001}", r#""\u200b\u00a0\U000e0001""#),
        ];
        for (text, want) in cases {
            assert_eq!(quote(text), want);
        }
    }

    #[test]
    fn text_is_quoted_as_recorded() {
        for row in include_str!("../testdata/quoted.jsonl").lines() {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            assert_eq!(quote(row["text"].as_str().unwrap()), row["quoted"].as_str().unwrap());
        }
    }
}
