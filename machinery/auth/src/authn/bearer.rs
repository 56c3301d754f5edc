//! Parses a bearer token from an `Authorization` value, as upstream does.

/// Warning for two spaces after the scheme; the token is then empty and ignored.
pub const EXTRA_SPACE_WARNING: &str =
    "the provided Authorization header contains extra space before the bearer token, and is ignored";

/// Contents of the `Authorization` header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bearer<'a> {
    /// Token, or `None` if the header is absent, has another scheme or is empty.
    pub token: Option<&'a [u8]>,
    /// Warning for the caller.
    pub warning: Option<&'static str>,
}

/// Returns the second space-separated field after the scheme `bearer` (any case) of the trimmed header.
pub(super) fn parse(header: Option<&[u8]>) -> Bearer<'_> {
    let mut fields = header.unwrap_or_default().trim_ascii().split(|byte| *byte == b' ');
    if !fields.next().is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer")) {
        return Bearer::default();
    }
    match (fields.next(), fields.next()) {
        (None, _) => Bearer::default(),
        (Some(b""), Some(_)) => Bearer { token: None, warning: Some(EXTRA_SPACE_WARNING) },
        (Some(b""), None) => Bearer::default(),
        (Some(token), _) => Bearer { token: Some(token), warning: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_parsed_as_in_upstream() {
        let warned = Some(EXTRA_SPACE_WARNING);
        for (header, token, warning) in [
            (None, None, None),
            (Some(""), None, None),
            (Some("Bearer"), None, None),
            (Some("Bearer "), None, None),
            (Some("Bearer t"), Some("t"), None),
            (Some("  bEARER t  "), Some("t"), None),
            (Some("Bearer t u"), Some("t"), None),
            (Some("Bearer  t"), None, warned),
            (Some("Basic dDp0"), None, None),
            (Some("Bearert t"), None, None),
            (Some("Bearer ädmin"), Some("ädmin"), None),
        ] {
            let token = token.map(str::as_bytes);
            assert_eq!(parse(header.map(str::as_bytes)), Bearer { token, warning }, "{header:?}");
        }
    }
}
