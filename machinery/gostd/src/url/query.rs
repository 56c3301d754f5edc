//! Query strings: `url.ParseQuery`, `Values.Get` and `Values.Encode`.

use std::borrow::Cow;

use super::escape::{escape_into, is_unreserved, unescape};

/// Parameters in the query of a URL.
///
/// `urlmaxqueryparams` of Go.
///
/// Limit (Logs, traces and files): the query is ignored.
pub const MAX_QUERY_PARAMETERS: usize = 10_000;

/// Decoded key and value.
pub type Pair<'q> = (Cow<'q, [u8]>, Cow<'q, [u8]>);

/// Iterates over the pairs of a raw query in order, like `url.ParseQuery`.
///
/// Pairs that are empty, or contain a semicolon or a malformed escape, are skipped. A query of more than
/// [`MAX_QUERY_PARAMETERS`] pairs has none.
pub fn pairs(raw: &[u8]) -> impl Iterator<Item = Pair<'_>> {
    let ampersands = raw.iter().filter(|byte| **byte == b'&').count();
    let raw = if ampersands < MAX_QUERY_PARAMETERS { raw } else { b"" };
    raw.split(|byte| *byte == b'&').filter_map(|pair| {
        if pair.is_empty() || pair.contains(&b';') {
            return None;
        }
        let separator = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let value = pair.get(separator + 1..).unwrap_or_default();
        Some((unescape(&pair[..separator], true)?, unescape(value, true)?))
    })
}

/// Returns the first value of a key in a raw query (`Values.Get`).
#[must_use]
pub fn first_value<'q>(raw: &'q str, key: &str) -> Option<Cow<'q, str>> {
    pairs(raw.as_bytes()).find(|(k, _)| k.as_ref() == key.as_bytes()).map(|(_, value)| text(value))
}

/// Parsed query string. Bytes that are not UTF-8 become U+FFFD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query<'q>(Vec<(Cow<'q, str>, Cow<'q, str>)>);

impl<'q> Query<'q> {
    /// Parses a raw query.
    #[must_use]
    pub fn parse(raw: &'q str) -> Self {
        Self(pairs(raw.as_bytes()).map(|(key, value)| (text(key), text(value))).collect())
    }

    /// True if there are no parameters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first value of a key.
    #[must_use]
    pub fn first(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_ref())
    }

    /// Iterates over all values of a key, in order.
    pub fn all<'s>(&'s self, key: &'s str) -> impl Iterator<Item = &'s str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, value)| value.as_ref())
    }

    /// Iterates over all pairs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), value.as_ref()))
    }
}

fn text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }),
    }
}

/// Appends a raw query, parsed and encoded again like in Go (`Values.Encode`): pairs sorted by key, without the question mark.
/// Appends no text if no pair is valid.
pub fn encode_query(out: &mut Vec<u8>, raw: &[u8]) {
    let mut pairs: Vec<Pair<'_>> = pairs(raw).collect();
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    for (index, (key, value)) in pairs.iter().enumerate() {
        if index > 0 {
            out.push(b'&');
        }
        escape_query_into(out, key);
        out.push(b'=');
        escape_query_into(out, value);
    }
}

/// Encodes and appends a key or a value (`url.QueryEscape`); a space becomes `+`.
pub fn escape_query_into(out: &mut Vec<u8>, bytes: &[u8]) {
    for run in bytes.split_inclusive(|byte| *byte == b' ') {
        match run.split_last() {
            Some((b' ', head)) => {
                escape_into(out, head, is_unreserved);
                out.push(b'+');
            }
            _ => escape_into(out, run, is_unreserved),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(raw: &str) -> String {
        let mut out = Vec::new();
        encode_query(&mut out, raw.as_bytes());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn queries_parse_as_recorded() {
        let rows = include_str!("../../testdata/parse_query.jsonl").lines();
        let mut count = 0;
        for row in rows {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            assert_eq!(encoded(row["query"].as_str().unwrap()), row["encoded"].as_str().unwrap(), "{row}");
            count += 1;
        }
        assert!(count > 800, "{count} rows");
    }

    #[test]
    fn queries_with_too_many_pairs_are_empty() {
        let max = "a&".repeat(MAX_QUERY_PARAMETERS - 1) + "b=1";
        assert_eq!(first_value(&max, "b").as_deref(), Some("1"));
        assert_eq!(first_value(&(max + "&c"), "b"), None);
    }

    proptest! {
        #[test]
        fn all_readers_see_the_same_pairs(raw in "([ab=&;+%]|%41|%fF|watch=){0,12}") {
            let query = Query::parse(&raw);
            let first = first_value(&raw, "a");
            prop_assert_eq!(query.first("a"), first.as_deref());
            prop_assert_eq!(query.iter().count(), pairs(raw.as_bytes()).count());
            let decoded = encoded(&raw);
            prop_assert_eq!(encoded(&decoded), decoded);
        }
    }
}
