//! Validation of values that several kinds contain: ports, addresses, keys of data, labels.

use std::borrow::Cow;
use std::net::IpAddr;

use portico_gostd::netip::{is_link_local_multicast, is_link_local_unicast};
use portico_machinery::Cursor;
use portico_machinery::field::Path;
use portico_machinery::names;
pub use portico_machinery::names::dns1123_label as label;

use crate::{Errors, checks};

const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
const CONFIG_KEY_MAX: usize = 253;
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// Formats an object as errors print a Go struct without JSON names: with Go's names and all fields. Absent `texts` are empty,
/// absent `pointers` are null.
pub fn format_go_struct(at: &Cursor<'_>, texts: &[(&str, &str)], pointers: &[(&str, &str)]) -> String {
    let texts = texts.iter().map(|(name, field)| format!("{name:?}:{}", at.field(field).printed()));
    let pointers = pointers.iter().map(|(name, field)| format!("{name:?}:{}", at.field(field).json()));
    let fields: Vec<String> = texts.chain(pointers).collect();
    format!("{{{}}}", fields.join(","))
}

/// Returns the error of a port number, if it is invalid.
pub fn port_number(number: i64) -> Option<&'static str> {
    (!(1..=65_535).contains(&number)).then_some(PORT_RANGE)
}

/// Validates the port number at a cursor; an absent one is 0.
pub fn port(cursor: &Cursor<'_>, errors: &mut Errors) {
    let number = cursor.i64().unwrap_or(0);
    if let Some(text) = port_number(number) {
        errors.push(portico_machinery::field::Error::invalid(&cursor.path(), number, text));
    }
}

/// Validates a port, given by number or by name.
pub fn port_or_name(at: &Cursor<'_>, errors: &mut Errors) {
    if at.opt_str().is_none() {
        return port(at, errors);
    }
    let diagnostics = port_name(at.str());
    errors.extend(
        diagnostics.iter().map(|m| portico_machinery::field::Error::invalid(&at.path(), at.str(), m)),
    );
}

/// Returns the errors of a port name (IANA service name).
pub fn port_name(name: &str) -> Vec<&'static str> {
    let mut messages = Vec::new();
    if name.len() > 15 {
        messages.push("must be no more than 15 characters");
    }
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.is_empty() || !name.bytes().all(is_allowed) {
        messages.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        messages.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        messages.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        messages.push("must not begin or end with a hyphen");
    }
    messages
}

/// Validates an address, in any notation that old objects may contain. Returns the address if it can be parsed.
pub fn ip(cursor: &Cursor<'_>, errors: &mut Errors) -> Option<IpAddr> {
    let text = cursor.str();
    if let Ok(address) = text.parse::<IpAddr>() {
        if is_mapped(address) {
            errors.push(cursor.invalid("must not be an IPv4-mapped IPv6 address"));
        }
        return Some(address);
    }
    errors.push(cursor.invalid(ip_parse_error(text)));
    None
}

/// Returns the reason why a text is no address.
fn ip_parse_error(text: &str) -> &'static str {
    match is_padded_ip(text) {
        true => "must not have leading 0s",
        false => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    }
}

/// True if the text is an IPv4 address, possibly with leading zeros.
pub fn is_padded_ip(text: &str) -> bool {
    text.split('.').count() == 4 && text.split('.').all(|part| part.parse::<u8>().is_ok())
}

/// Returns the error of a name that is no address in canonical notation.
pub fn ip_name(name: &str) -> Vec<String> {
    let diagnostic = match name.parse::<IpAddr>().map(|address| (address, address.to_string())) {
        Err(_) => ip_parse_error(name).to_owned(),
        Ok((address, _)) if is_mapped(address) => "must not be an IPv4-mapped IPv6 address".to_owned(),
        Ok((_, canonical)) if canonical != name => format!("must be in canonical form ({canonical:?})"),
        Ok(_) => return Vec::new(),
    };
    vec![diagnostic]
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// Validates an address to which traffic may be sent.
pub fn endpoint_ip(cursor: &Cursor<'_>, address: Option<IpAddr>, errors: &mut Errors) {
    let Some(address) = address else {
        errors.push(cursor.invalid("must be a valid IP address"));
        return;
    };
    if address.is_unspecified() {
        errors.push(cursor.invalid(&format!("may not be unspecified ({})", cursor.str())));
    } else if address.is_loopback() {
        errors.push(cursor.invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    } else if is_link_local_unicast(address) {
        errors.push(cursor.invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
    } else if is_link_local_multicast(address) {
        errors.push(cursor.invalid("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"));
    }
}

/// Replaces a trailing dash in the prefix of a generated name, because the generated part follows (upstream's
/// `maskTrailingDash`).
pub fn masked_prefix(prefix: &str) -> Cow<'_, str> {
    match prefix.strip_suffix('-') {
        Some(stem) if !stem.is_empty() => {
            let end = stem.char_indices().next_back().map_or(0, |(at, _)| at);
            Cow::Owned(format!("{}a", &stem[..end]))
        }
        _ => Cow::Borrowed(prefix),
    }
}

/// Returns the errors of a key of ConfigMap or Secret data.
pub fn config_key(key: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if key.len() > CONFIG_KEY_MAX {
        messages.push(format!("must be no more than {CONFIG_KEY_MAX} characters"));
    }
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(legal) {
        messages.push(CONFIG_KEY.to_owned());
    }
    match key {
        "." => messages.push("must not be '.'".to_owned()),
        ".." => messages.push("must not be '..'".to_owned()),
        _ if key.starts_with("..") => messages.push("must not start with '..'".to_owned()),
        _ => {}
    }
    messages
}

/// Returns the number of bytes that a base64 value encodes.
pub fn decoded_length(base64: &str) -> usize {
    let padding = base64.bytes().rev().take_while(|b| *b == b'=').count();
    (base64.len() / 4 * 3).saturating_sub(padding)
}

/// Returns a warning that contains the canonical notation of an address.
pub fn ip_warning(cursor: &Cursor<'_>) -> Option<String> {
    ip_warning_at(&cursor.path(), cursor.str())
}

/// Like [`ip_warning`], with a different path in the warning.
pub fn ip_warning_at(path: &Path, text: &str) -> Option<String> {
    let Ok(address) = text.parse::<IpAddr>() else {
        let octets = text.split('.').map(|part| part.parse::<u8>().ok()).collect::<Option<Vec<_>>>()?;
        let bare = IpAddr::from(<[u8; 4]>::try_from(octets).ok()?).to_string();
        return Some(format!("{path}: non-standard IP address {text:?} is invalid: use {bare:?}"));
    };
    let canonical = address.to_canonical().to_string();
    if is_mapped(address) {
        return Some(format!("{path}: non-standard IP address {text:?} is invalid: use {canonical:?}"));
    }
    (canonical != text).then(|| {
        format!("{path}: IPv6 address {text:?} should be in RFC 5952 canonical format ({canonical:?})")
    })
}

/// Validates the name of a CSI driver: a subdomain of at most 63 bytes, upper case allowed.
pub fn driver_name(at: &Cursor<'_>, errors: &mut Errors) {
    const NAME_MAX: usize = 63;
    let name = at.str();
    if name.is_empty() {
        errors.push(at.required(""));
        return;
    }
    checks::max_bytes(at, NAME_MAX, errors);
    errors.extend(names::to_field_errors(&at.path(), name, names::dns1123_subdomain(&name.to_lowercase())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use portico_machinery::Object;

    fn endpoint(ip_text: &str) -> Vec<String> {
        let mut object = Object::default();
        object.set(&["ip"], ip_text);
        let (cursor, mut errors) = (object.at(&["ip"]), Vec::new());
        let address = ip(&cursor, &mut errors);
        endpoint_ip(&cursor, address, &mut errors);
        errors.iter().map(|e| e.body.clone()).collect()
    }

    #[test]
    fn addresses_are_validated_as_upstream_validates_them() {
        assert_eq!(endpoint("10.1.2.3"), Vec::<String>::new());
        for (text, want) in [
            ("127.0.0.1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
            ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
            ("169.254.1.1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
            ("ff02::1", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
            ("010.0.0.1", "must not have leading 0s"),
            ("x", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        ] {
            assert_eq!(endpoint(text)[0], format!("Invalid value: {text:?}: {want}"));
        }
    }

    #[test]
    fn an_address_as_name_must_be_canonical() {
        assert!(ip_name("10.0.0.1").is_empty() && ip_name("2001:db8::1").is_empty());
        assert_eq!(ip_name("2001:DB8::1"), [r#"must be in canonical form ("2001:db8::1")"#]);
        assert_eq!(ip_name("::ffff:10.0.0.1"), ["must not be an IPv4-mapped IPv6 address"]);
        assert_eq!(ip_name("010.0.0.1"), ["must not have leading 0s"]);
    }

    #[test]
    fn keys_ports_and_labels_are_validated() {
        assert!(config_key("a.b-C_1").is_empty() && config_key("a b") == [CONFIG_KEY]);
        assert_eq!(config_key("..a"), ["must not start with '..'"]);
        assert!(port_number(65_535).is_none() && port_number(0).is_some());
        assert!(port_name("http-1").is_empty() && !port_name("8080").is_empty());
        assert_eq!(label("a.b"), ["must not contain dots"]);
        assert_eq!((decoded_length("AAEC"), decoded_length("AAE="), decoded_length("")), (3, 2, 0));
    }
}
