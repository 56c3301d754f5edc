//! Header values as text. All code reads them through this module, because `HeaderValue::to_str` rejects everything but visible
//! ASCII: skipping such a value would have the same effect as if the client had not sent it.
//!
//! Headers that name an identity are read as bytes (`portico_auth::headers`): values that are not UTF-8 reject the request.

use http::header::{AsHeaderName, HeaderMap, HeaderValue};

/// Replaces a value that is not UTF-8: present, but different from every expected value.
const NOT_UTF8: &str = "\u{fffd}";

/// Returns the value as text.
#[must_use]
pub fn text(value: &HeaderValue) -> &str {
    std::str::from_utf8(value.as_bytes()).unwrap_or(NOT_UTF8)
}

/// Returns the first value of this header as text, or an empty string if there is none.
pub fn first(headers: &HeaderMap, name: impl AsHeaderName) -> &str {
    headers.get(name).map(text).unwrap_or_default()
}

/// Returns the comma-separated parts of all values of this header, trimmed, in order, without empty parts.
pub fn tokens<K: AsHeaderName>(headers: &HeaderMap, name: K) -> impl Iterator<Item = &[u8]> + use<'_, K> {
    let values = headers.get_all(name).into_iter();
    let parts = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    parts.map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_ascii_are_read_and_none_is_left_out() {
        let mut headers = HeaderMap::new();
        for value in [&b"a, \xc3\xa4"[..], b"\xff , b", b" , "] {
            headers.append("x", HeaderValue::from_bytes(value).unwrap());
        }
        assert_eq!(tokens(&headers, "x").collect::<Vec<_>>(), [&b"a"[..], "ä".as_bytes(), b"\xff", b"b"]);
        assert_eq!((first(&headers, "x"), first(&headers, "y")), ("a, ä", ""));
        assert_eq!(text(&HeaderValue::from_bytes(b"a\xff").unwrap()), NOT_UTF8);
    }
}
