//! Values of literals: numbers, escapes of strings and bytes.

use crate::value::Value;

/// Parses an integer literal with its sign.
pub(super) fn int(text: &str, negative: bool) -> Option<i64> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    let amount = i128::from_str_radix(digits, radix).ok()?;
    i64::try_from(if negative { -amount } else { amount }).ok()
}

/// Parses an unsigned integer literal with its `u`.
pub(super) fn uint(text: &str) -> Option<u64> {
    let text = text.trim_end_matches(['u', 'U']);
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    u64::from_str_radix(digits, radix).ok()
}

/// Parses a number with a fraction or an exponent. Returns `None` for infinite numbers.
pub(super) fn double(text: &str, negative: bool) -> Option<f64> {
    let amount: f64 = text.parse().ok()?;
    amount.is_finite().then_some(if negative { -amount } else { amount })
}

/// Parses a string or bytes literal with prefixes and quotes.
///
/// # Errors
/// cel-go's message for invalid escapes.
pub(super) fn parse_quoted(written: &str, bytes: bool) -> Result<Value<'static>, &'static str> {
    let body = if bytes { &written[1..] } else { written };
    let raw = body.starts_with(['r', 'R']);
    let body = if raw { &body[1..] } else { body };
    let triple = body.len() >= 6 && (body.starts_with("\"\"\"") || body.starts_with("'''"));
    let quotes = if triple { 3 } else { 1 };
    let inner =
        body.get(quotes..body.len() - quotes).unwrap_or_default().replace("\r\n", "\n").replace('\r', "\n");
    let content = if raw || !inner.contains('\\') { inner.into_bytes() } else { unescape(&inner, bytes)? };
    if bytes {
        return Ok(Value::Bytes(content.into()));
    }
    String::from_utf8(content).map(Value::text).map_err(|_| "invalid unicode code point")
}

fn unescape(inner: &str, bytes: bool) -> Result<Vec<u8>, &'static str> {
    let mut content = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(start) = rest.find('\\') {
        content.extend_from_slice(&rest.as_bytes()[..start]);
        let after = &rest[start + 1..];
        let letter = after.chars().next().ok_or("unable to unescape string, found '\\' as last character")?;
        let length = append_escape(after, letter, bytes, &mut content)?;
        rest = after.get(length..).unwrap_or_default();
    }
    content.extend_from_slice(rest.as_bytes());
    Ok(content)
}

/// Appends the value of one escape, and returns its length.
fn append_escape(
    after: &str,
    letter: char,
    bytes: bool,
    content: &mut Vec<u8>,
) -> Result<usize, &'static str> {
    let simple = match letter {
        'a' => Some(7),
        'b' => Some(8),
        'f' => Some(12),
        'n' => Some(b'\n'),
        'r' => Some(b'\r'),
        't' => Some(b'\t'),
        'v' => Some(11),
        '\\' | '\'' | '"' | '`' | '?' => Some(letter as u8),
        _ => None,
    };
    if let Some(byte) = simple {
        content.push(byte);
        return Ok(1);
    }
    let (digits, radix, length) = match letter {
        'x' | 'X' => (after.get(1..3), 16, 3),
        'u' if !bytes => (after.get(1..5), 16, 5),
        'U' if !bytes => (after.get(1..9), 16, 9),
        '0'..='3' => (after.get(..3), 8, 3),
        _ => return Err("unable to unescape string"),
    };
    let code = digits
        .and_then(|digits| u32::from_str_radix(digits, radix).ok())
        .ok_or("unable to unescape string")?;
    if bytes {
        content.push(u8::try_from(code).map_err(|_| "unable to unescape string")?);
    } else {
        let character = char::from_u32(code).ok_or("invalid unicode code point")?;
        content.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Ok(length)
}
