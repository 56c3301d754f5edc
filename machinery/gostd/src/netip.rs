//! Package `net/netip`, and the classification of addresses by package `net`.
//!
//! ```
//! use portico_gostd::netip::{Prefix, is_global_unicast, parse_address};
//!
//! let address = parse_address("10.1.2.3").unwrap();
//! assert!(is_global_unicast(address.ip));
//! assert!("10.0.0.0/8".parse::<Prefix>().unwrap().contains(address.ip));
//! // Leading zeros are refused, as in Go.
//! assert!(parse_address("010.1.2.3").is_err());
//! ```

mod address;
mod prefix;

use std::net::{IpAddr, Ipv4Addr};

pub use address::{Address, parse_address};
pub use prefix::Prefix;

/// True for link-local unicast addresses (`IP.IsLinkLocalUnicast`). IPv4-mapped IPv6 addresses count as IPv4.
#[must_use]
pub fn is_link_local_unicast(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// True for link-local multicast addresses (`IP.IsLinkLocalMulticast`).
#[must_use]
pub fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(v4) => v4.octets().starts_with(&[224, 0, 0]),
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}

/// True for unicast addresses except loopback, link-local and unspecified ones (`IP.IsGlobalUnicast`). Private addresses
/// are global.
#[must_use]
pub fn is_global_unicast(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    let special = ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_link_local_unicast(ip);
    !special && ip != IpAddr::V4(Ipv4Addr::BROADCAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_print_and_are_classified_as_recorded() {
        let rows = include_str!("../testdata/addresses.jsonl").lines();
        let mut count = 0;
        for row in rows {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            let text = row["text"].as_str().unwrap();
            match parse_address(text) {
                Err(error) => assert_eq!(Some(error.as_str()), row["error"].as_str(), "{row}"),
                Ok(Address { ip, .. }) => {
                    assert_eq!(Some(ip.to_string().as_str()), row["printed"].as_str(), "{row}");
                    let [global, local, multicast] =
                        [is_global_unicast(ip), is_link_local_unicast(ip), is_link_local_multicast(ip)];
                    let kinds = format!("global={global} local={local} multicast={multicast}");
                    assert_eq!(row["kinds"].as_str(), Some(kinds.as_str()), "{row}");
                }
            }
            count += 1;
        }
        assert!(count > 300, "{count} rows");
    }
}
