//! Path and query of a request to a backend. Pure functions.
//!
//! Upstream's rule: the path is decoded and encoded again (an encoded slash becomes a slash, as authorization saw it), the query
//! is parsed and encoded again with sorted keys. Most requests already have that form and are forwarded without a copy.

use bytes::Bytes;
use http::Uri;
use http::uri::PathAndQuery;
use portico_gostd::url::{
    MAX_QUERY_PARAMETERS, encode_query, escape_into, hex_pair, is_unreserved, unescape,
};

use crate::refusal::Refusal;

/// Returns the request target for the backend.
pub(crate) fn path_and_query(uri: &Uri) -> Result<PathAndQuery, Refusal> {
    let (path, query) = (uri.path(), uri.query());
    if is_canonical_path(path.as_bytes())
        && query.is_none_or(|query| is_canonical_query(query.as_bytes()))
        && let Some(same) = uri.path_and_query()
    {
        return Ok(same.clone());
    }
    let mut out = Vec::with_capacity(path.len() + query.map_or(0, str::len) + 16);
    let decoded = unescape(path.as_bytes(), false)
        .ok_or_else(|| Refusal::BadRequest(format!("invalid URL escape in {path:?}")))?;
    escape_into(&mut out, &decoded, is_path_byte);
    if let Some(query) = query {
        out.push(b'?');
        encode_query(&mut out, query.as_bytes());
        if out.ends_with(b"?") {
            out.pop();
        }
    }
    PathAndQuery::from_maybe_shared(Bytes::from(out))
        .map_err(|error| Refusal::BadRequest(format!("invalid request path: {error}")))
}

/// Returns the request target for an unescaped path and an encoded query.
pub(crate) fn connect_target(path: &str, query: &str) -> Result<PathAndQuery, Refusal> {
    let mut out = Vec::with_capacity(path.len() + query.len() + 16);
    escape_into(&mut out, if path.is_empty() { b"/" } else { path.as_bytes() }, is_path_byte);
    if !query.is_empty() {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
    PathAndQuery::from_maybe_shared(Bytes::from(out))
        .map_err(|error| Refusal::BadRequest(format!("invalid request path: {error}")))
}

/// Escapes a path for a URL as [`connect_target`] does.
pub(crate) fn escape_path(out: &mut Vec<u8>, path: &str) {
    escape_into(out, path.as_bytes(), is_path_byte);
}

fn is_path_byte(byte: u8) -> bool {
    is_unreserved(byte) || matches!(byte, b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'@')
}

fn is_canonical_path(path: &[u8]) -> bool {
    is_canonical(path, is_path_byte)
}

/// Returns true if decoding and escaping yields the same bytes.
fn is_canonical(bytes: &[u8], keeps: fn(u8) -> bool) -> bool {
    let mut rest = bytes;
    loop {
        match rest {
            [] => return true,
            [b'%', high, low, tail @ ..] => {
                let upper = !high.is_ascii_lowercase() && !low.is_ascii_lowercase();
                match hex_pair(*high, *low) {
                    Some(byte) if upper && !keeps(byte) => rest = tail,
                    _ => return false,
                }
            }
            [byte, tail @ ..] if keeps(*byte) => rest = tail,
            _ => return false,
        }
    }
}

/// Returns true for queries such as `a=1&b=x%2Cy`: unescaped sorted keys, each with `=`, and values escaped as upstream does.
fn is_canonical_query(query: &[u8]) -> bool {
    let mut last: &[u8] = b"";
    let mut pairs = 0;
    query.split(|byte| *byte == b'&').all(|pair| {
        pairs += 1;
        let Some(at) = pair.iter().position(|byte| *byte == b'=') else { return false };
        let (key, value) = (&pair[..at], &pair[at + 1..]);
        let ordered = last <= key;
        last = key;
        pairs <= MAX_QUERY_PARAMETERS
            && ordered
            && key.iter().all(|byte| is_unreserved(*byte))
            && is_canonical(value, is_value_byte)
    })
}

/// Returns true for bytes that may appear in a canonical value. A space is written `+`, so `%20` is not canonical in a value.
fn is_value_byte(byte: u8) -> bool {
    is_unreserved(byte) || byte == b'+' || byte == b' '
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target_of(uri: &str) -> String {
        path_and_query(&uri.parse().unwrap()).unwrap().to_string()
    }

    #[test]
    fn paths_are_decoded_and_encoded_again() {
        let table = [
            ("/apis/g/v/x", "/apis/g/v/x"),
            ("/apis/g/v/x/", "/apis/g/v/x/"),
            ("/apis/g/v//x", "/apis/g/v//x"),
            ("/apis/g/v/a%2Fb", "/apis/g/v/a/b"),
            ("/apis/g/v/a%2fb", "/apis/g/v/a/b"),
            ("/apis/g/v/a%20b", "/apis/g/v/a%20b"),
            ("/apis/g/v/%c3%a4", "/apis/g/v/%C3%A4"),
            ("/apis/g/v/%61:b", "/apis/g/v/a:b"),
            ("/apis/g/v/a!b", "/apis/g/v/a%21b"),
            ("/apis/g/v/a%3Fb", "/apis/g/v/a%3Fb"),
            ("/apis/g/v/a%25b", "/apis/g/v/a%25b"),
        ];
        for (input, want) in table {
            assert_eq!(target_of(input), want, "{input}");
        }
    }

    #[test]
    fn queries_are_sorted_by_key_and_normalized() {
        let table = [
            ("/x?limit=5", "/x?limit=5"),
            ("/x?b=1&a=2", "/x?a=2&b=1"),
            ("/x?a", "/x?a="),
            ("/x?", "/x"),
            ("/x?x=2&x=1&a=0", "/x?a=0&x=2&x=1"),
            (
                "/x?limit=5&labelSelector=a%3Db%2Cc&empty=&x=1&x=2",
                "/x?empty=&labelSelector=a%3Db%2Cc&limit=5&x=1&x=2",
            ),
            ("/x?a=b=c", "/x?a=b%3Dc"),
            ("/x?a=1;b=2&c=3", "/x?c=3"),
            ("/x?a=%zz&c=3", "/x?c=3"),
            ("/x?a=1+2&b=1%202", "/x?a=1+2&b=1+2"),
            ("/x?&&a=1", "/x?a=1"),
            ("/x?a=%2f", "/x?a=%2F"),
        ];
        for (input, want) in table {
            assert_eq!(target_of(input), want, "{input}");
        }
    }

    #[test]
    fn a_broken_escape_in_the_path_is_a_bad_request() {
        assert!(matches!(path_and_query(&"/a%zz".parse().unwrap()), Err(Refusal::BadRequest(_))));
        assert!(matches!(path_and_query(&"/a%2".parse().unwrap()), Err(Refusal::BadRequest(_))));
    }

    proptest! {
        #[test]
        fn normalizing_twice_changes_nothing(path in "/[a-z%2Ff0-9!*/ü]{0,12}", query in "[a-z&=+%25;A-F]{0,16}") {
            let mut text: String = path.chars().filter(char::is_ascii).collect();
            text.push('?');
            text.push_str(&query);
            if let Ok(uri) = text.parse::<Uri>() && let Ok(once) = path_and_query(&uri) {
                let again = path_and_query(&Uri::from(once.clone())).unwrap();
                prop_assert_eq!(&again, &once);
                prop_assert!(is_canonical_path(once.path().as_bytes()));
            }
        }
    }
}
