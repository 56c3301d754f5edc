//! Parses and formats addresses like upstream (`utilnet.ParseIPSloppy`).

use std::net::IpAddr;

/// Parses an address. Leading zeros in IPv4 fields are decimal, and IPv4-mapped IPv6 addresses become IPv4 addresses.
pub(super) fn parse(text: &str) -> Option<IpAddr> {
    let strict = |text: &str| text.parse::<IpAddr>().ok().map(|ip| ip.to_canonical());
    strict(text).or_else(|| {
        let fields: Vec<String> = text.split('.').map(without_zeros).collect::<Option<_>>()?;
        strict(&fields.join("."))
    })
}

fn without_zeros(field: &str) -> Option<String> {
    let is_number = !field.is_empty() && field.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| match field.trim_start_matches('0') {
        "" => "0".to_owned(),
        digits => digits.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn irregular_addresses_are_printed_as_regular_ones() {
        let rows = [
            ("10.0.0.1", Some("10.0.0.1")),
            ("010.000.00.01", Some("10.0.0.1")),
            ("::ffff:1.2.3.4", Some("1.2.3.4")),
            ("2001:DB8:0::1", Some("2001:db8::1")),
            ("1.2.3", None),
            ("1.2.3.x", None),
            ("256.1.1.1", None),
            ("", None),
        ];
        for (text, want) in rows {
            assert_eq!(parse(text).map(|ip| ip.to_string()).as_deref(), want, "{text}");
        }
    }
}
