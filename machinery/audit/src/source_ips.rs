//! Addresses of the client and of proxies of a request (upstream's `SourceIPs`).

use std::net::IpAddr;

/// Returns the addresses in `X-Forwarded-For`, the one in `X-Real-Ip` unless already included, and the address of the peer
/// unless it equals the last one.
///
/// All but the last are claims of the client.
#[must_use]
pub fn source_ips(forwarded_for: &str, real_ip: &str, peer: IpAddr) -> Vec<String> {
    let mut found: Vec<IpAddr> = forwarded_for.split(',').filter_map(|part| parse(part.trim())).collect();
    if let Some(real) = parse(real_ip).filter(|ip| !found.contains(ip)) {
        found.push(real);
    }
    let peer = peer.to_canonical();
    if found.last() != Some(&peer) {
        found.push(peer);
    }
    found.iter().map(ToString::to_string).collect()
}

fn parse(text: &str) -> Option<IpAddr> {
    text.parse().ok().map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_listed_first_without_consecutive_duplicates() {
        for (forwarded, real, peer, expected) in [
            ("", "", "127.0.0.1", "127.0.0.1"),
            ("1.2.3.4, 5.6.7.8", "9.9.9.9", "10.0.0.1", "1.2.3.4 5.6.7.8 9.9.9.9 10.0.0.1"),
            ("1.2.3.4,nonsense,", "1.2.3.4", "10.0.0.1", "1.2.3.4 10.0.0.1"),
            ("10.0.0.1", "", "::ffff:10.0.0.1", "10.0.0.1"),
            ("10.0.0.1, 1.1.1.1", "", "10.0.0.1", "10.0.0.1 1.1.1.1 10.0.0.1"),
            ("2001:db8::0:1", "x", "::1", "2001:db8::1 ::1"),
        ] {
            assert_eq!(source_ips(forwarded, real, peer.parse().unwrap()).join(" "), expected);
        }
    }
}
