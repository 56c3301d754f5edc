//! Parsers of flag values.

use std::time::Duration;

use portico_kit::tls::{self, MinVersion};

/// Parses a Go duration such as `1m30s`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    portico_gostd::time::parse_duration(text).map_err(|e| e.to_string())
}

/// Parses a Go duration greater than zero.
pub(super) fn positive_duration(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|d| if d.is_zero() { Err("must be greater than 0".to_owned()) } else { Ok(d) })
}

/// Parses a probability between 0 and 0.02, upstream's bounds for `--goaway-chance`.
pub(super) fn goaway_chance(text: &str) -> Result<f64, String> {
    let chance: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=0.02).contains(&chance) { Ok(chance) } else { Err("must be between 0 and 0.02".to_owned()) }
}

/// Checks a directive of the Strict-Transport-Security header.
pub(super) fn hsts_directive(text: &str) -> Result<String, String> {
    let age =
        text.strip_prefix("max-age=").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    if age || matches!(text, "includeSubDomains" | "preload") {
        Ok(text.to_owned())
    } else {
        Err("must be max-age=N, includeSubDomains or preload".to_owned())
    }
}

/// Checks that a CORS origin is a regular expression, anchored as upstream requires.
pub(super) fn cors_origin(text: &str) -> Result<String, String> {
    let starts = text.contains('^') || text.contains("//");
    let ends = text.contains('$') || text.contains(':');
    if text.is_empty() || !starts || !ends {
        return Err("must be anchored: contain ^ or //, and $ or :".to_owned());
    }
    regex::Regex::new(text).map(|_| text.to_owned()).map_err(|e| e.to_string())
}

/// Parses the Go name of a TLS version.
pub(super) fn tls_min_version(text: &str) -> Result<MinVersion, String> {
    match MinVersion::from_flag(text) {
        Ok(version) => Ok(version),
        Err(error) => Err(format!("{error}; supported versions are VersionTLS12 and VersionTLS13")),
    }
}

/// Parses the IANA name, or an older Go name, of a cipher suite.
pub(super) fn tls_cipher_suite(text: &str) -> Result<String, String> {
    let name = match text.strip_suffix("_CHACHA20_POLY1305") {
        Some(_) => format!("{text}_SHA256"),
        None => text.to_owned(),
    };
    tls::provider_with(std::slice::from_ref(&name), &[]).map(|_| name).map_err(|error| error.to_string())
}

/// Parses the IANA number of a key exchange group.
pub(super) fn tls_key_exchange(text: &str) -> Result<u16, String> {
    let id = text.parse().map_err(|_| "not a number".to_owned())?;
    tls::provider_with(&[], &[id]).map(|_| id).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_bounds_are_rejected_with_a_reason() {
        assert!(
            goaway_chance("0.02").is_ok() && goaway_chance("0.021").is_err() && goaway_chance("x").is_err()
        );
        assert!(hsts_directive("max-age=5").is_ok() && hsts_directive("max-age=").is_err());
        assert!(
            cors_origin("^https://a$").is_ok() && cors_origin("a").is_err() && cors_origin("^($").is_err()
        );
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert!(duration("90").is_err());
        assert!(positive_duration("1ms").is_ok() && positive_duration("0s").is_err());
    }
}
