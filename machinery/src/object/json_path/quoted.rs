//! Quoted texts with Go's escapes.

/// Returns the content of a quoted text, or `None` for an escape that Go does not have.
pub(super) fn unquote(text: &str, quote: char) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => push_escape(&mut rest, quote, &mut bytes)?,
            c if c == quote => return None,
            c => push_char(&mut bytes, c),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn push_char(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn push_escape(rest: &mut std::str::Chars<'_>, quote: char, bytes: &mut Vec<u8>) -> Option<()> {
    let c = rest.next()?;
    match c {
        'a' => bytes.push(7),
        'b' => bytes.push(8),
        'f' => bytes.push(12),
        'n' => bytes.push(b'\n'),
        'r' => bytes.push(b'\r'),
        't' => bytes.push(b'\t'),
        'v' => bytes.push(11),
        '\\' => bytes.push(b'\\'),
        'x' => bytes.push(u8::try_from(digits(rest, 0, 2, 16)?).ok()?),
        'u' => push_char(bytes, char::from_u32(digits(rest, 0, 4, 16)?)?),
        'U' => push_char(bytes, char::from_u32(digits(rest, 0, 8, 16)?)?),
        '0'..='7' => bytes.push(u8::try_from(digits(rest, c.to_digit(8)?, 2, 8)?).ok()?),
        c if c == quote => push_char(bytes, c),
        _ => return None,
    }
    Some(())
}

/// Parses `count` further digits of a number after its first ones.
fn digits(rest: &mut std::str::Chars<'_>, first: u32, count: usize, radix: u32) -> Option<u32> {
    (0..count).try_fold(first, |number, _| {
        let digit = rest.next()?.to_digit(radix)?;
        number.checked_mul(radix)?.checked_add(digit)
    })
}
