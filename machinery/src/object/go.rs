//! Formatting of values like Go, for upstream's messages and templates.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

/// Float in the format of Go's `%v`: shortest, with an exponent below 1e-4 and from 1e6 on.
#[derive(Clone, Copy, Debug)]
pub struct Float(pub f64);

impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:e}", self.0);
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or_default();
        if self.0 == 0.0 || (-4..6).contains(&exponent) {
            return write!(f, "{}", self.0);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(f, "{digits}e{sign}{:02}", exponent.abs())
    }
}

/// JSON value in the format of Go's `%v`: `map[a:1 b:[x <nil>]]`.
#[derive(Clone, Copy, Debug)]
pub struct GoValue<'v>(pub &'v Value);

impl fmt::Display for GoValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("<nil>"),
            Value::Bool(truth) => write!(f, "{truth}"),
            Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
                Some(float) => Float(float).fmt(f),
                None => write!(f, "{number}"),
            },
            Value::String(text) => f.write_str(text),
            Value::Array(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{}", if index > 0 { " " } else { "" }, GoValue(item))?;
                }
                f.write_str("]")
            }
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                f.write_str("map[")?;
                for (index, (key, value)) in entries.into_iter().enumerate() {
                    write!(f, "{}{key}:{}", if index > 0 { " " } else { "" }, GoValue(value))?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Escapes the HTML characters in JSON like Go. Such characters occur only in strings.
#[must_use]
pub fn escape_html(json: &str) -> Cow<'_, str> {
    const ESCAPED_CHARACTERS: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];
    if !json.contains(ESCAPED_CHARACTERS) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match c {
            c if ESCAPED_CHARACTERS.contains(&c) => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_exponents_where_go_has_them() {
        let rows = [
            (4.5, "4.5"),
            (0.0, "0"),
            (999_999.0, "999999"),
            (1_234_567.5, "1.2345675e+06"),
            (1e21, "1e+21"),
            (0.0001, "0.0001"),
            (1e-7, "1e-07"),
        ];
        for (float, want) in rows {
            assert_eq!(Float(float).to_string(), want);
        }
    }

    #[test]
    fn html_characters_are_escaped() {
        assert_eq!(escape_html(r#"{"a":"b"}"#), r#"{"a":"b"}"#);
        assert_eq!(escape_html("\"<a>&\u{2028}\""), r#""\u003ca\u003e\u0026\u2028""#);
    }
}
