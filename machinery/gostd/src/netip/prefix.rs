//! Prefixes: an address, and the number of its bits that identify the network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::parse_address;
use crate::strconv::quote;

/// IP network. Address bits after the prefix are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// IP address.
    pub ip: IpAddr,
    /// Length of the prefix in bits.
    pub bits: u8,
}

impl FromStr for Prefix {
    type Err = String;

    /// Go's message: `netip.ParsePrefix("1.2.3.0/"): bad bits after slash: ""`.
    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).map_err(|reason| format!("netip.ParsePrefix({}): {reason}", quote(text)))
    }
}

fn parse(text: &str) -> Result<Prefix, String> {
    let (address, bits) = text.rsplit_once('/').ok_or("no '/'")?;
    let address = parse_address(address)?;
    if !address.zone.is_empty() {
        return Err("IPv6 zones cannot be present in a prefix".to_owned());
    }
    let invalid_bits = || format!("bad bits after slash: {}", quote(bits));
    if bits.len() > 1 && !bits.starts_with(|c: char| ('1'..='9').contains(&c)) {
        return Err(invalid_bits());
    }
    let bits: i64 = bits.parse().map_err(|_| invalid_bits())?;
    let bits = u8::try_from(bits).ok().filter(|bits| *bits <= width(address.ip));
    Ok(Prefix { ip: address.ip, bits: bits.ok_or("prefix length out of range")? })
}

/// Returns the number of bits of an address.
fn width(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

impl Prefix {
    /// Returns the prefix of an address as a number.
    fn network_bits(ip: IpAddr, bits: u8) -> u128 {
        let number = match ip {
            IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
            IpAddr::V6(ip) => ip.to_bits(),
        };
        let shift = 128 - u32::from(bits);
        number.checked_shr(shift).and_then(|head| head.checked_shl(shift)).unwrap_or(0)
    }

    /// Returns the network with the bits after the prefix set to zero.
    #[must_use]
    pub fn masked(self) -> Self {
        let head = Self::network_bits(self.ip, self.bits);
        let ip = match self.ip {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(head >> 96).unwrap_or_default())),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(head)),
        };
        Self { ip, ..self }
    }

    /// True if the network contains an address of the same family.
    #[must_use]
    pub fn contains(self, ip: IpAddr) -> bool {
        self.ip.is_ipv4() == ip.is_ipv4()
            && Self::network_bits(self.ip, self.bits) == Self::network_bits(ip, self.bits)
    }

    /// True if the network contains another network.
    #[must_use]
    pub fn contains_network(self, other: Self) -> bool {
        self.bits <= other.bits && self.contains(other.ip)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn networks_contain_addresses_and_networks_of_their_family() {
        for (network, ip, want) in [
            ("192.168.0.0/24", "192.168.0.1", true),
            ("192.168.0.0/24", "192.168.1.1", false),
            ("192.168.0.77/24", "192.168.0.1", true),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "::1", false),
            ("1.2.3.4/32", "1.2.3.4", true),
            ("::/0", "2001::1", true),
            ("2001:db8::/32", "2001:db8::1", true),
            ("2001:db8::/32", "2001:dc8::1", false),
        ] {
            assert_eq!(prefix(network).contains(ip.parse().unwrap()), want, "{network} {ip}");
        }
        for (network, other, want) in [
            ("192.168.0.0/24", "192.168.0.0/25", true),
            ("192.168.0.0/24", "192.168.0.0/23", false),
            ("192.168.0.0/24", "192.169.0.1/32", false),
            ("::/0", "0.0.0.0/0", false),
        ] {
            assert_eq!(prefix(network).contains_network(prefix(other)), want, "{network} {other}");
        }
        assert_eq!(prefix("192.168.77.1/16").masked().to_string(), "192.168.0.0/16");
        assert_eq!(prefix("2001:db8:1::/32").masked().to_string(), "2001:db8::/32");
        assert_eq!(prefix("1.2.3.4/0").masked().to_string(), "0.0.0.0/0");
    }

    #[test]
    fn a_malformed_prefix_is_refused() {
        for (text, want) in [
            ("1.2.3.4", "no '/'"),
            ("1.2.3.0/", "bad bits after slash: \"\""),
            ("1.2.3.0/024", "bad bits after slash: \"024\""),
            ("1.2.3.0/+4", "bad bits after slash: \"+4\""),
            ("1.2.3.0/33", "prefix length out of range"),
            ("1.2.3/8", "ParseAddr(\"1.2.3\"): IPv4 address too short"),
            ("fe80::1%eth0/64", "IPv6 zones cannot be present in a prefix"),
        ] {
            assert_eq!(text.parse::<Prefix>(), Err(format!("netip.ParsePrefix(\"{text}\"): {want}")));
        }
    }
}
