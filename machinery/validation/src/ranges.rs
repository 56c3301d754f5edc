//! Address ranges (CIDRs): as fields hold them, strict and lenient, and warnings for unusual spellings.

use std::net::IpAddr;

use ipnet::IpNet;
use portico_machinery::Cursor;

use crate::Errors;

const NOT_A_RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// A range that new objects may hold, in whatever spelling; the range when it is one.
pub fn cidr(at: &Cursor<'_>, errors: &mut Errors) -> Option<IpNet> {
    match parse(at.str()) {
        Ok(range) => Some(range),
        Err(text) => {
            errors.push(at.invalid(text));
            None
        }
    }
}

/// As [`cidr`], in its one canonical spelling.
pub fn canonical_cidr(at: &Cursor<'_>, errors: &mut Errors) -> Option<IpNet> {
    let range = cidr(at, errors)?;
    if range.to_string() != at.str() {
        errors.push(at.invalid(&format!("must be in canonical form ({:?})", range.to_string())));
    }
    Some(range)
}

/// An address with the length of its network's prefix, in its one canonical spelling.
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

/// The range in a text, or upstream's first diagnostic.
pub fn parse(text: &str) -> Result<IpNet, &'static str> {
    let range: IpNet = text.parse().map_err(|_| NOT_A_RANGE)?;
    if has_leading_zeros(text) {
        return Err("must not have leading 0s in IP or prefix length");
    }
    if matches!(range.addr(), IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some()) {
        return Err("must not have an IPv4-mapped IPv6 address");
    }
    if range.addr() != range.network() {
        return Err("must not have bits set beyond the prefix length");
    }
    Ok(range)
}

/// Whether a number of a range is spelled with zeros in front.
fn has_leading_zeros(text: &str) -> bool {
    let decimal = |number: &str| number.len() > 1 && number.starts_with('0');
    let (ip, bits) = text.split_once('/').unwrap_or((text, ""));
    decimal(bits) || (!ip.contains(':') && ip.split('.').any(decimal))
}

/// How a range should have been written, as a warning.
pub fn warning(at: &Cursor<'_>) -> Option<String> {
    let (text, path) = (at.str(), at.path());
    let range = text.parse::<IpNet>().ok()?;
    if has_leading_zeros(text) {
        let canonical = range.trunc().to_string();
        return Some(format!("{path}: non-standard CIDR value {text:?} is invalid: use {canonical:?}"));
    }
    if range.addr() != range.network() {
        let host = IpNet::from(range.addr()).to_string();
        let masked = range.trunc().to_string();
        return Some(format!(
            "{path}: CIDR value {text:?} is ambiguous in this context (should be {masked:?} or {host:?}?)"
        ));
    }
    let canonical = range.to_string();
    (canonical != text && range.addr().is_ipv6()).then(|| {
        format!("{path}: IPv6 CIDR value {text:?} should be in RFC 5952 canonical format ({canonical:?})")
    })
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
            ("::ffff:10.0.0.0/104", Some("must not have an IPv4-mapped IPv6 address")),
            ("10.0.0.1/8", Some("must not have bits set beyond the prefix length")),
        ];
        for (text, diagnostic) in rows {
            assert_eq!(parse(text).err(), diagnostic, "{text}");
        }
    }

    #[test]
    fn unusual_spellings_are_warned_of() {
        let warning_of = |text: &str| {
            let mut object = Object::default();
            object.set(&["c"], text);
            warning(&object.at(&["c"]))
        };
        assert_eq!(warning_of("10.0.0.0/8"), None);
        assert_eq!(
            warning_of("2001:DB8::/32").unwrap(),
            "c: IPv6 CIDR value \"2001:DB8::/32\" should be in RFC 5952 canonical format (\"2001:db8::/32\")"
        );
        assert_eq!(
            warning_of("10.1.2.3/8").unwrap(),
            "c: CIDR value \"10.1.2.3/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.1.2.3/32\"?)"
        );
        assert_eq!(
            warning_of("010.0.0.0/8").unwrap(),
            "c: non-standard CIDR value \"010.0.0.0/8\" is invalid: use \"10.0.0.0/8\""
        );
    }
}
