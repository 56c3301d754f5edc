//! Address ranges (CIDRs): strict and lenient validation, and warnings for non-canonical notation.

use std::net::IpAddr;

use ipnet::IpNet;
use portico_machinery::Cursor;

use crate::Errors;

const NOT_A_RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// Validates a range of a new object, in any notation. Returns the range if it can be parsed, even if it is not valid.
pub fn cidr(at: &Cursor<'_>, errors: &mut Errors) -> Option<IpNet> {
    if let Err(text) = parse(at.str()) {
        errors.push(at.invalid(text));
    }
    parse_lenient(at.str()).map(|(range, _)| range)
}

/// Like [`cidr`], but requires the canonical notation.
pub fn canonical_cidr(at: &Cursor<'_>, errors: &mut Errors) -> Option<IpNet> {
    match parse(at.str()) {
        Ok(range) => {
            if range.to_string() != at.str() {
                errors.push(at.invalid(&format!("must be in canonical form ({:?})", range.to_string())));
            }
            Some(range)
        }
        Err(text) => {
            errors.push(at.invalid(text));
            None
        }
    }
}

/// Validates an address with the prefix length of its network, in canonical notation.
pub fn interface_address(at: &Cursor<'_>, errors: &mut Errors) {
    match at.str().parse::<IpNet>() {
        Err(_) => errors
            .push(at.invalid("must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)")),
        Ok(address) if address.to_string() != at.str() => {
            errors.push(at.invalid(&format!("must be in canonical form ({:?})", address.to_string())));
        }
        Ok(_) => {}
    }
}

/// Parses a range. Returns upstream's first error.
pub fn parse(text: &str) -> Result<IpNet, &'static str> {
    let (range, is_padded) = parse_lenient(text).ok_or(NOT_A_RANGE)?;
    if is_padded {
        return Err("must not have leading 0s in IP or prefix length");
    }
    if is_mapped(&range) {
        return Err("must not have an IPv4-mapped IPv6 address");
    }
    if range.addr() != range.network() {
        return Err("must not have bits set beyond the prefix length");
    }
    Ok(range)
}

/// Parses a range whose decimal numbers may have leading zeros; true if some have.
pub fn parse_lenient(text: &str) -> Option<(IpNet, bool)> {
    let (ip, bits) = text.split_once('/')?;
    // An IPv4 address may also be the end of an IPv6 address.
    let (head, tail) = ip.split_at(ip.rfind(':').map_or(0, |colon| colon + 1));
    let is_ipv4 = head.is_empty() || tail.contains('.');
    let tail = if is_ipv4 {
        tail.split('.').map(strip_leading_zeros).collect::<Vec<_>>().join(".")
    } else {
        tail.to_owned()
    };
    let spelling = format!("{head}{tail}/{}", strip_leading_zeros(bits));
    let range = spelling.parse().ok()?;
    Some((range, spelling != text))
}

/// Removes leading zeros from a decimal number.
fn strip_leading_zeros(number: &str) -> &str {
    match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0",
        bare => bare,
    }
}

fn is_mapped(range: &IpNet) -> bool {
    matches!(range.addr(), IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// Returns warnings that contain the canonical notation of a range.
pub fn warnings(at: &Cursor<'_>) -> Vec<String> {
    let (text, path) = (at.str(), at.path());
    let Some((range, is_padded)) = parse_lenient(text) else { return Vec::new() };
    let (masked, mut warnings) = (range.trunc().to_string(), Vec::new());
    if range.addr() != range.network() {
        let host = IpNet::from(range.addr()).to_string();
        warnings.push(format!(
            "{path}: CIDR value {text:?} is ambiguous in this context (should be {masked:?} or {host:?}?)"
        ));
    }
    if is_padded || is_mapped(&range) {
        warnings.push(format!("{path}: non-standard CIDR value {text:?} is invalid: use {masked:?}"));
    }
    let canonical = range.to_string();
    if warnings.is_empty() && canonical != text && range.addr().is_ipv6() {
        warnings.push(format!(
            "{path}: IPv6 CIDR value {text:?} should be in RFC 5952 canonical format ({canonical:?})"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use portico_machinery::Object;

    #[test]
    fn ranges_are_validated_as_upstream_validates_them() {
        let rows = [
            ("10.0.0.0/8", None),
            ("2001:DB8::/32", None),
            ("10.0.0.1", Some(NOT_A_RANGE)),
            ("10.0.0.0/33", Some(NOT_A_RANGE)),
            ("010.0.0.0/8", Some("must not have leading 0s in IP or prefix length")),
            ("10.0.0.0/08", Some("must not have leading 0s in IP or prefix length")),
            ("192.0.2.0/024", Some("must not have leading 0s in IP or prefix length")),
            ("00010.0.0.0/8", Some("must not have leading 0s in IP or prefix length")),
            ("10.0.0.0/", Some(NOT_A_RANGE)),
            ("0.0.0.0/0", None),
            ("::/0", None),
            ("::ffff:10.0.0.0/104", Some("must not have an IPv4-mapped IPv6 address")),
            ("10.0.0.1/8", Some("must not have bits set beyond the prefix length")),
        ];
        for (text, diagnostic) in rows {
            assert_eq!(parse(text).err(), diagnostic, "{text}");
        }
    }

    #[test]
    fn noncanonical_notation_causes_warnings() {
        let rows: [(&str, &[&str]); 5] = [
            ("10.0.0.0/8", &[]),
            (
                "2001:DB8::/32",
                &[
                    "c: IPv6 CIDR value \"2001:DB8::/32\" should be in RFC 5952 canonical format (\"2001:db8::/32\")",
                ],
            ),
            (
                "10.1.2.3/8",
                &[
                    "c: CIDR value \"10.1.2.3/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.1.2.3/32\"?)",
                ],
            ),
            ("010.0.0.0/8", &["c: non-standard CIDR value \"010.0.0.0/8\" is invalid: use \"10.0.0.0/8\""]),
            (
                "10.0.0.1/008",
                &[
                    "c: CIDR value \"10.0.0.1/008\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?)",
                    "c: non-standard CIDR value \"10.0.0.1/008\" is invalid: use \"10.0.0.0/8\"",
                ],
            ),
        ];
        for (text, want) in rows {
            let mut object = Object::default();
            object.set(&["c"], text);
            assert_eq!(warnings(&object.at(&["c"])), want);
        }
    }
}
