//! Percent escapes by part of a URL, with Go's tables of the characters that each part escapes.

use super::escape::{escape_into, hex_pair};
use crate::strconv::quote;

/// Part of a URL, which determines the characters that are escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Path,
    UserPassword,
    Host,
    Zone,
    Fragment,
}

impl Part {
    fn is_host(self) -> bool {
        matches!(self, Self::Host | Self::Zone)
    }
}

fn must_escape(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() || (part.is_host() && b"!$&'()*+,;=:[]<>\"".contains(&byte)) {
        return false;
    }
    match byte {
        b'-' | b'_' | b'.' | b'~' => false,
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match part {
            Part::Path => byte == b'?',
            Part::UserPassword => matches!(byte, b'@' | b'/' | b'?' | b':'),
            Part::Fragment => false,
            Part::Host | Part::Zone => true,
        },
        b'!' | b'(' | b')' | b'*' => part != Part::Fragment,
        _ => true,
    }
}

/// Escapes the text of a part.
pub(super) fn escape(text: &[u8], part: Part) -> String {
    let mut escaped = Vec::with_capacity(text.len());
    escape_into(&mut escaped, text, |byte| !must_escape(byte, part));
    String::from_utf8_lossy(&escaped).into_owned()
}

/// True if a text is a valid encoding of a path or a fragment.
pub(super) fn is_escaped(text: &str, part: Part) -> bool {
    text.bytes().all(|byte| b"!$&'()*+,;=:@[]%".contains(&byte) || !must_escape(byte, part))
}

/// Decodes the text of a part.
///
/// # Errors
/// Go's messages: `invalid URL escape "%zz"`, `invalid character " " in host name`.
pub(super) fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'%' => {
                plain.push(escaped_byte(bytes, index, part)?);
                index += 3;
                continue;
            }
            byte if part.is_host() && *byte < 0x80 && must_escape(*byte, part) => {
                return Err(format!(
                    "invalid character {} in host name",
                    quote(&char::from(*byte).to_string())
                ));
            }
            byte => plain.push(*byte),
        }
        index += 1;
    }
    Ok(plain)
}

fn escaped_byte(bytes: &[u8], index: usize, part: Part) -> Result<u8, String> {
    let escape = &bytes[index..bytes.len().min(index + 3)];
    let refused = || format!("invalid URL escape {}", quote(&String::from_utf8_lossy(escape)));
    let &[_, high, low] = escape else { return Err(refused()) };
    let byte = hex_pair(high, low).ok_or_else(refused)?;
    let allowed = match part {
        // In hosts, only bytes beyond ASCII are escaped, and the percent sign before a zone.
        Part::Host => byte >= 0x80 || escape == b"%25",
        Part::Zone => escape == b"%25" || byte == b' ' || !must_escape(byte, Part::Host),
        _ => true,
    };
    if allowed { Ok(byte) } else { Err(refused()) }
}
