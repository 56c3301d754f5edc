//! Formats of numbers and codes that are written as text: UUIDs, ISBNs, credit cards, colors, base64.

/// True for 32 hexadecimal digits with an optional dash between groups, of this version; the variant is checked from version 4.
pub(super) fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut rest = text.as_bytes();
    for (group, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((digits, after)) = rest.split_at_checked(length) else { return false };
        let fits = match (group, version) {
            (2, Some(version)) => digits[0] == version,
            (3, Some(b'4' | b'5')) => matches!(digits[0], b'8' | b'9' | b'a' | b'b' | b'A' | b'B'),
            _ => true,
        };
        if !fits || !digits.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

/// Returns the characters of an ISBN without white space and dashes.
fn isbn(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !matches!(b, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'-')).collect()
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let code = isbn(text);
    if code.len() != 10 || !code[..9].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match code[9] {
        b'X' => 10,
        digit if digit.is_ascii_digit() => u32::from(digit - b'0'),
        _ => return false,
    };
    let sum: u32 = (1..).zip(&code[..9]).map(|(weight, digit)| weight * u32::from(digit - b'0')).sum();
    (sum + 10 * last).is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let code = isbn(text);
    if code.len() != 13 || !code.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = weights.zip(&code).map(|(weight, digit)| weight * u32::from(digit - b'0')).sum();
    sum.is_multiple_of(10)
}

/// True for a number of a known card company with a valid check digit. Other characters between digits are ignored.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.bytes().filter(u8::is_ascii_digit).map(|b| u32::from(b - b'0')).collect();
    let head = |count: usize| digits.iter().take(count).fold(0, |number, digit| number * 10 + digit);
    let is_known_prefix = match digits.len() {
        13 => head(1) == 4,
        14 => (300..=305).contains(&head(3)) || matches!(head(2), 36 | 38),
        15 => matches!(head(2), 34 | 37) || matches!(head(4), 2131 | 1800),
        16 => {
            head(1) == 4 || (51..=55).contains(&head(2)) || head(4) == 6011 || head(2) == 65 || head(2) == 35
        }
        _ => false,
    };
    let sum: u32 = digits.iter().rev().enumerate().map(|(index, digit)| luhn(index, *digit)).sum();
    is_known_prefix && sum.is_multiple_of(10)
}

fn luhn(index: usize, digit: u32) -> u32 {
    let doubled = digit * 2;
    match index % 2 {
        0 => digit,
        _ if doubled > 9 => doubled - 9,
        _ => doubled,
    }
}

/// True for `123-45-6789`, with dashes or spaces: eleven characters.
pub(super) fn is_ssn(text: &str) -> bool {
    text.len() == 11
        && text.bytes().enumerate().all(|(index, b)| match index {
            3 | 6 => b == b'-' || b == b' ',
            _ => b.is_ascii_digit(),
        })
}

pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// True for `rgb(1, 2, 3)`.
pub(super) fn is_rgb_color(text: &str) -> bool {
    let content = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    let Some(content) = content else { return false };
    let parts: Vec<&str> = content.split(',').collect();
    parts.len() == 3 && parts.iter().all(|part| is_shade(part.trim_matches(is_space)))
}

fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ')
}

/// True for a number up to 255 without leading zeros.
fn is_shade(text: &str) -> bool {
    let plain = text == "0" || !text.starts_with('0');
    plain && text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u8>().is_ok()
}

/// True for padded base64 of at least one byte, without line breaks.
pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    !digits.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && digits.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}
