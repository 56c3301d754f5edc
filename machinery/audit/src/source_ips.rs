//! Where a request comes from, and by way of whom (upstream's `SourceIPs`).

use std::net::IpAddr;

/// Addresses of `X-Forwarded-For`, that of `X-Real-Ip` where it is not among them, and the peer's unless it is the last.
///
/// All but the last are what the client says.
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
    fn proxies_come_first_and_nobody_twice_in_a_row() {
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
