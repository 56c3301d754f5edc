//! Addresses of this server for clients (`serverAddressByClientCIDRs`): its own for all clients, and that of the Service
//! `default/kubernetes` for clients in the range of Services.

use std::net::IpAddr;
use std::str::FromStr;

use http::HeaderMap;
use ipnet::IpNet;
use portico_kit::header_text;

/// Additional address for clients in a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressRule {
    /// Range of client addresses.
    pub clients: IpNet,
    /// `host:port` for these clients.
    pub address: String,
}

/// Parses `CIDR host:port`, the format in the configuration stream.
impl FromStr for AddressRule {
    type Err = ipnet::AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (clients, address) = text.split_once(' ').unwrap_or((text, ""));
        Ok(Self { clients: clients.parse()?, address: address.to_owned() })
    }
}

/// Address of the client as upstream determines it: the first address that a proxy named, or that of the connection. A client
/// that forges it learns only an address that is not secret.
pub(super) fn client_ip(headers: &HeaderMap, peer: Option<IpAddr>) -> Option<IpAddr> {
    let forwarded =
        header_text::first(headers, "x-forwarded-for").split(',').find_map(|ip| ip.trim().parse().ok());
    forwarded.or_else(|| header_text::first(headers, "x-real-ip").parse().ok()).or(peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_valid_address_is_used() {
        let peer: IpAddr = "127.0.0.1".parse().unwrap();
        for (name, value, want) in [
            ("x-forwarded-for", "10.0.3.4, 192.168.0.1", "10.0.3.4"),
            ("x-forwarded-for", "unknown, 10.0.3.4", "10.0.3.4"),
            ("x-real-ip", "10.0.3.4", "10.0.3.4"),
            ("x-forwarded-for", "nonsense", "127.0.0.1"),
            ("x-other", "10.0.3.4", "127.0.0.1"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(client_ip(&headers, Some(peer)), Some(want.parse().unwrap()), "{name}: {value}");
        }
    }

    #[test]
    fn a_rule_is_a_range_and_an_address() {
        let rule: AddressRule = "10.0.0.0/16 10.0.0.1:443".parse().unwrap();
        assert_eq!((rule.clients.to_string(), rule.address.as_str()), ("10.0.0.0/16".into(), "10.0.0.1:443"));
        assert!("here".parse::<AddressRule>().is_err());
    }
}
