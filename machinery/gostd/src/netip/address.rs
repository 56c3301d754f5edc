//! `netip.ParseAddr`: strict parsing of addresses (no leading zeros, no abbreviated IPv4), with Go's errors.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::strconv::quote;

/// An IP address with an optional zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'t> {
    /// IP address.
    pub ip: IpAddr,
    /// Zone after `%`; empty if there is none.
    pub zone: &'t str,
}

/// Reason why a text is not an address.
struct ParseError<'t> {
    reason: &'static str,
    /// Rest of the text, for the message.
    at: &'t str,
}

fn parse_error<'t, T>(reason: &'static str, at: &'t str) -> Result<T, ParseError<'t>> {
    Err(ParseError { reason, at })
}

/// Parses an address.
///
/// # Errors
/// Go's message: `ParseAddr("1.2.3"): IPv4 address too short`.
pub fn parse_address(text: &str) -> Result<Address<'_>, String> {
    let parsed = match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => {
            parse_v4(text).map(|fields| Address { ip: IpAddr::V4(Ipv4Addr::from(fields)), zone: "" })
        }
        Some(b':') => parse_v6(text),
        Some(_) => parse_error("missing IPv6 address", ""),
        None => parse_error("unable to parse IP", ""),
    };
    parsed.map_err(|ParseError { reason, at }| {
        let location = if at.is_empty() { String::new() } else { format!(" (at {})", quote(at)) };
        format!("ParseAddr({}): {reason}{location}", quote(text))
    })
}

fn parse_v4(text: &str) -> Result<[u8; 4], ParseError<'_>> {
    let mut fields = [0; 4];
    let (mut field, mut value, mut digits) = (0, 0_u16, 0);
    let bytes = text.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return parse_error("IPv4 field has octet with leading zero", "");
                }
                (value, digits) = (value * 10 + u16::from(byte - b'0'), digits + 1);
                fields[field] =
                    u8::try_from(value).or_else(|_| parse_error("IPv4 field has value >255", ""))?;
            }
            b'.' => {
                if index == 0 || index + 1 == bytes.len() || bytes[index - 1] == b'.' {
                    return parse_error("IPv4 field must have at least one digit", &text[index..]);
                }
                if field == 3 {
                    return parse_error("IPv4 address too long", "");
                }
                (field, value, digits) = (field + 1, 0, 0);
            }
            _ => return parse_error("unexpected character", text.get(index..).unwrap_or_default()),
        }
    }
    if field < 3 { parse_error("IPv4 address too short", "") } else { Ok(fields) }
}

fn parse_v6(text: &str) -> Result<Address<'_>, ParseError<'_>> {
    let (address, zone) = match text.split_once('%') {
        Some((_, "")) => return parse_error("zone must be a non-empty string", ""),
        Some((address, zone)) => (address, zone),
        None => (text, ""),
    };
    let mut groups = Groups { bytes: [0; 16], filled: 0, gap: None };
    let mut rest = address;
    if let Some(after) = rest.strip_prefix("::") {
        (groups.gap, rest) = (Some(0), after);
        if rest.is_empty() {
            return Ok(Address { ip: IpAddr::V6(Ipv6Addr::UNSPECIFIED), zone });
        }
    }
    while groups.filled < 16 {
        let digits = hex_digits(rest)?;
        if rest[digits..].starts_with('.') {
            groups.end_with_v4(rest)?;
            rest = "";
            break;
        }
        groups.push(&rest[..digits]);
        rest = groups.separator(&rest[digits..])?;
        if rest.is_empty() {
            break;
        }
    }
    if !rest.is_empty() {
        return parse_error("trailing garbage after address", rest);
    }
    Ok(Address { ip: IpAddr::V6(groups.address()?), zone })
}

/// Returns the number of hexadecimal digits at the start of a group: one to four.
fn hex_digits(rest: &str) -> Result<usize, ParseError<'_>> {
    match rest.bytes().take(5).take_while(u8::is_ascii_hexdigit).count() {
        0 => parse_error("each colon-separated field must have at least one digit", rest),
        5 => parse_error("each group must have 4 or less digits", rest),
        digits => Ok(digits),
    }
}

/// Groups of an IPv6 address while parsing.
struct Groups {
    bytes: [u8; 16],
    filled: usize,
    /// Position of `::`.
    gap: Option<usize>,
}

impl Groups {
    fn push(&mut self, digits: &str) {
        let group = u16::from_str_radix(digits, 16).unwrap_or_default();
        self.bytes[self.filled..self.filled + 2].copy_from_slice(&group.to_be_bytes());
        self.filled += 2;
    }

    /// Parses the colons after a group, and returns the rest.
    fn separator<'t>(&mut self, rest: &'t str) -> Result<&'t str, ParseError<'t>> {
        if rest.is_empty() {
            return Ok("");
        }
        let Some(after) = rest.strip_prefix(':') else {
            return parse_error("unexpected character, want colon", rest);
        };
        if after.is_empty() {
            return parse_error("colon must be followed by more characters", rest);
        }
        let Some(after_gap) = after.strip_prefix(':') else { return Ok(after) };
        if self.gap.is_some() {
            return parse_error("multiple :: in address", after);
        }
        self.gap = Some(self.filled);
        Ok(after_gap)
    }

    fn end_with_v4<'t>(&mut self, rest: &'t str) -> Result<(), ParseError<'t>> {
        if self.gap.is_none() && self.filled != 12 {
            return parse_error("embedded IPv4 address must replace the final 2 fields of the address", rest);
        }
        if self.filled + 4 > 16 {
            return parse_error(
                "too many hex fields to fit an embedded IPv4 at the end of the address",
                rest,
            );
        }
        self.bytes[self.filled..self.filled + 4].copy_from_slice(&parse_v4(rest)?);
        self.filled += 4;
        Ok(())
    }

    fn address(mut self) -> Result<Ipv6Addr, ParseError<'static>> {
        match self.gap {
            None if self.filled < 16 => return parse_error("address string too short", ""),
            Some(_) if self.filled == 16 => {
                return parse_error("the :: must expand to at least one field of zeros", "");
            }
            Some(gap) => {
                let moved = self.filled - gap;
                self.bytes.copy_within(gap..self.filled, 16 - moved);
                self.bytes[gap..16 - moved].fill(0);
            }
            None => {}
        }
        Ok(Ipv6Addr::from(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for text in [
            "1.2.3.4",
            "0.0.0.0",
            "::",
            "::1",
            "1::",
            "2001:db8::68",
            "1:2:3:4:5:6:7:8",
            "::ffff:1.2.3.4",
            "1:2:3:4:5:6:1.2.3.4",
            "FE80::A",
        ] {
            let ip = parse_address(text).unwrap();
            assert_eq!((ip.ip, ip.zone), (text.parse().unwrap(), ""), "{text}");
        }
        assert_eq!(parse_address("fe80::1%eth0").unwrap().zone, "eth0");
    }

    #[test]
    fn a_malformed_address_is_refused() {
        for (text, want) in [
            ("", "unable to parse IP"),
            ("abc", "unable to parse IP"),
            ("a%b", "missing IPv6 address"),
            ("1.2.3", "IPv4 address too short"),
            ("1.2.3.4.5", "IPv4 address too long"),
            ("1.2.3.256", "IPv4 field has value >255"),
            ("01.2.3.4", "IPv4 field has octet with leading zero"),
            ("1..3.4", "IPv4 field must have at least one digit (at \".3.4\")"),
            ("1.2.3.", "IPv4 field must have at least one digit (at \".\")"),
            ("1.2.3.x", "unexpected character (at \"x\")"),
            ("fe80::1%", "zone must be a non-empty string"),
            (":1", "each colon-separated field must have at least one digit (at \":1\")"),
            ("2001:db8:::68", "each colon-separated field must have at least one digit (at \":68\")"),
            ("12345::", "each group must have 4 or less digits (at \"12345::\")"),
            ("1:2", "address string too short"),
            ("1:2:", "colon must be followed by more characters (at \":\")"),
            ("1::2::3", "multiple :: in address (at \":3\")"),
            ("1x::", "unexpected character, want colon (at \"x::\")"),
            ("1:2:3:4:5:6:7:8:9", "trailing garbage after address (at \"9\")"),
            ("::1:2:3:4:5:6:7:8", "the :: must expand to at least one field of zeros"),
            (
                "1:2.3.4.5",
                "embedded IPv4 address must replace the final 2 fields of the address (at \"2.3.4.5\")",
            ),
            (
                "1::2:3:4:5:6:7:1.2.3.4",
                "too many hex fields to fit an embedded IPv4 at the end of the address (at \"1.2.3.4\")",
            ),
            ("::1.2.3", "IPv4 address too short"),
        ] {
            assert_eq!(parse_address(text), Err(format!("ParseAddr({}): {want}", quote(text))), "{text}");
        }
    }
}
