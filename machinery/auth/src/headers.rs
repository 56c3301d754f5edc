//! Header fields as this crate reads them, whatever the protocol calls them (HTTP headers, gRPC metadata).

use percent_encoding::percent_decode_str;
use portico_gostd::url::escapes_are_whole;

/// Read access to a request's header fields. The servers implement it on their own wrapper of `HeaderMap` or `MetadataMap`.
pub trait HeaderValues {
    /// Calls `visit` with (name, value) for each text field, in the order received. Names in any case.
    fn visit(&self, visit: &mut dyn FnMut(&str, &str));

    /// Every value of the field of this name (any case), in order.
    fn values(&self, name: &str) -> Vec<String> {
        let mut found = Vec::new();
        self.visit(&mut |n, v| {
            if n.eq_ignore_ascii_case(name) {
                found.push(v.to_owned());
            }
        });
        found
    }
}

impl HeaderValues for &[(&str, &str)] {
    fn visit(&self, visit: &mut dyn FnMut(&str, &str)) {
        self.iter().for_each(|(n, v)| visit(n, v));
    }
}

/// No header fields at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHeaders;

impl HeaderValues for NoHeaders {
    fn visit(&self, _: &mut dyn FnMut(&str, &str)) {}
}

/// What follows `prefix` in a header name (any case), when something does.
pub(crate) fn after_prefix<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = name.split_at_checked(prefix.len())?;
    (head.eq_ignore_ascii_case(prefix) && !prefix.is_empty()).then_some(rest)
}

/// The key of an extra field as upstream reads it: lower case, then percent-decoded; kept as it is when it does not decode.
pub(crate) fn extra_key(raw: &str) -> String {
    let lower = raw.to_ascii_lowercase();
    match escapes_are_whole(&lower).then(|| percent_decode_str(&lower).decode_utf8()) {
        Some(Ok(decoded)) => decoded.into_owned(),
        _ => lower,
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
            ("a%ff", "a%ff"),
        ] {
            assert_eq!(extra_key(raw), want, "{raw}");
        }
    }

    #[test]
    fn a_prefix_matches_in_any_case_and_not_inside_a_character() {
        assert_eq!(after_prefix("x-remote-extra-A", "X-Remote-Extra-"), Some("A"));
        assert_eq!(after_prefix("x-remote", "X-Remote-Extra-"), None);
        assert_eq!(after_prefix("é", "x"), None);
    }
}
