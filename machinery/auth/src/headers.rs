//! Access to header fields, independent of the protocol (HTTP headers, gRPC metadata).

use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use portico_gostd::url::escapes_are_whole;

/// Error for a header that names an identity and whose value, or the name of its extra field, is not UTF-8. The request is
/// refused, because it must continue neither without the header nor with a changed name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header {0} is not valid UTF-8")]
pub struct NotUtf8(pub String);

/// Read access to the header fields of a request. The servers implement it for wrappers of `HeaderMap` or `MetadataMap`.
pub trait HeaderValues {
    /// Calls `visit` with the name, in any case, and the raw value of each field, in the order of arrival.
    fn visit(&self, visit: &mut dyn FnMut(&str, &[u8]));

    /// Returns every value of the field with this name (any case), in order.
    ///
    /// # Errors
    /// Returns [`NotUtf8`] if a value is not UTF-8.
    fn values(&self, name: &str) -> Result<Vec<String>, NotUtf8> {
        let mut values = Vec::new();
        self.visit(&mut |field, value| {
            if field.eq_ignore_ascii_case(name) {
                values.push(text(field, value).map(str::to_owned));
            }
        });
        values.into_iter().collect()
    }
}

impl<V: AsRef<[u8]>> HeaderValues for &[(&str, V)] {
    fn visit(&self, visit: &mut dyn FnMut(&str, &[u8])) {
        self.iter().for_each(|(name, value)| visit(name, value.as_ref()));
    }
}

/// Empty header fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHeaders;

impl HeaderValues for NoHeaders {
    fn visit(&self, _: &mut dyn FnMut(&str, &[u8])) {}
}

/// Decodes the value of a header that names an identity.
pub(crate) fn text<'a>(name: &str, value: &'a [u8]) -> Result<&'a str, NotUtf8> {
    std::str::from_utf8(value).map_err(|_| NotUtf8(name.to_owned()))
}

/// Returns the rest of a header name after `prefix` (any case), unless it is empty.
pub(crate) fn after_prefix<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = name.split_at_checked(prefix.len())?;
    (head.eq_ignore_ascii_case(prefix) && !prefix.is_empty()).then_some(rest)
}

/// Decodes the key of an extra field as upstream does: lower case, then percent-decoded; unchanged if it cannot be decoded.
/// `name` is the name of the whole header.
pub(crate) fn extra_key(name: &str, raw: &str) -> Result<String, NotUtf8> {
    let lower = raw.to_ascii_lowercase();
    if !escapes_are_whole(&lower) {
        return Ok(lower);
    }
    let decoded = percent_decode_str(&lower).decode_utf8();
    decoded.map(Cow::into_owned).map_err(|_| NotUtf8(name.to_owned()))
}

/// Collector of a user's extra fields from headers.
#[derive(Default)]
pub(crate) struct ExtraFields {
    fields: BTreeMap<String, Vec<String>>,
    error: Option<NotUtf8>,
}

impl ExtraFields {
    /// Adds the value of the header `name`; `key` is the part of the name that names the field.
    pub(crate) fn insert(&mut self, name: &str, key: &str, value: &[u8]) {
        match extra_key(name, key).and_then(|key| Ok((key, text(name, value)?.to_owned()))) {
            Ok((key, value)) => self.fields.entry(key).or_default().push(value),
            Err(error) => self.error = Some(error),
        }
    }

    /// Returns the fields, or the last error.
    pub(crate) fn finish(self) -> Result<BTreeMap<String, Vec<String>>, NotUtf8> {
        self.error.map_or(Ok(self.fields), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_keys_are_lower_cased_and_decoded() {
        for (raw, want) in [
            ("Scopes", "scopes"),
            ("Acme.com%2Fproject", "acme.com/project"),
            ("Acme.com%2fProject", "acme.com/project"),
            ("a%zz", "a%zz"),
            ("a%", "a%"),
            ("a%c3%BC", "aü"),
        ] {
            assert_eq!(extra_key("x", raw).as_deref(), Ok(want), "{raw}");
        }
        assert_eq!(extra_key("x-extra-a%ff", "a%ff"), Err(NotUtf8("x-extra-a%ff".to_owned())));
    }

    #[test]
    fn a_prefix_matches_in_any_case_and_not_inside_a_character() {
        assert_eq!(after_prefix("x-remote-extra-A", "X-Remote-Extra-"), Some("A"));
        assert_eq!(after_prefix("x-remote", "X-Remote-Extra-"), None);
        assert_eq!(after_prefix("é", "x"), None);
    }
}
