//! Rules for addresses that must not be dialed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use arc_swap::ArcSwap;
use ipnet::IpNet;

/// Rule by which an address was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// 169.254.0.0/16 or fe80::/10, where metadata services listen.
    #[error("link-local addresses are not dialed")]
    LinkLocal,
    /// Multicast or broadcast.
    #[error("multicast addresses are not dialed")]
    Multicast,
    /// 0.0.0.0 or `::`.
    #[error("the unspecified address is not dialed")]
    Unspecified,
    /// A listener of this process: a request would loop.
    #[error("the address is a listener of this process")]
    OwnListener,
    /// Outside `--backend-allow-cidr`.
    #[error("the address is not within the allowed ranges")]
    NotAllowed,
}

/// Address rules, applied to every address after resolution. Clones share the listeners.
#[derive(Clone, Debug, Default)]
pub struct AddressPolicy {
    allowed_ranges: Arc<[IpNet]>,
    own_listeners: Arc<ArcSwap<Vec<SocketAddr>>>,
}

impl AddressPolicy {
    /// Returns a policy that allows only these ranges; an empty list allows all addresses that no other rule refuses.
    pub fn new(allow: Vec<IpNet>) -> Self {
        Self { allowed_ranges: allow.into(), own_listeners: Arc::default() }
    }

    /// Adds a listener of this process, after it was bound.
    pub fn add_own_listener(&self, addr: SocketAddr) {
        self.own_listeners.rcu(|listeners| listeners.iter().copied().chain([addr]).collect::<Vec<_>>());
    }

    /// Checks an address. The error is the rule that refuses it.
    pub fn check(&self, addr: SocketAddr) -> Result<(), Refusal> {
        let ip = addr.ip().to_canonical();
        if ip.is_unspecified() {
            return Err(Refusal::Unspecified);
        }
        if ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST) {
            return Err(Refusal::Multicast);
        }
        if is_link_local(ip) {
            return Err(Refusal::LinkLocal);
        }
        if self.own_listeners.load().iter().any(|listener| reaches_listener(*listener, ip, addr.port())) {
            return Err(Refusal::OwnListener);
        }
        if !self.allowed_ranges.is_empty() && !self.allowed_ranges.iter().any(|range| range.contains(&ip)) {
            return Err(Refusal::NotAllowed);
        }
        Ok(())
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || embedded_v4(ip).is_some_and(|ip| ip.is_link_local()),
    }
}

/// Returns the IPv4 address embedded in a NAT64 address (64:ff9b::/96).
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    match ip.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    }
}

/// True if a connection to `ip:port` reaches `listener`. A listener on the unspecified address accepts all
/// addresses of this machine, which are those that can be bound.
fn reaches_listener(listener: SocketAddr, ip: IpAddr, port: u16) -> bool {
    if listener.port() != port {
        return false;
    }
    let listener_ip = listener.ip().to_canonical();
    listener_ip == ip
        || (listener_ip.is_unspecified() && (ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_addresses_are_refused_with_the_rule() {
        let policy = AddressPolicy::default();
        let table = [
            ("169.254.169.254:80", Some(Refusal::LinkLocal)),
            ("[fe80::1]:443", Some(Refusal::LinkLocal)),
            ("[::ffff:169.254.169.254]:80", Some(Refusal::LinkLocal)),
            ("[64:ff9b::a9fe:a9fe]:80", Some(Refusal::LinkLocal)),
            ("224.0.0.1:443", Some(Refusal::Multicast)),
            ("[ff02::1]:443", Some(Refusal::Multicast)),
            ("255.255.255.255:443", Some(Refusal::Multicast)),
            ("0.0.0.0:443", Some(Refusal::Unspecified)),
            ("[::]:443", Some(Refusal::Unspecified)),
            ("127.0.0.1:8443", None),
            ("10.0.0.1:443", None),
        ];
        for (addr, refusal) in table {
            assert_eq!(policy.check(addr.parse().unwrap()).err(), refusal, "{addr}");
        }
    }

    #[test]
    fn own_listeners_are_refused_under_every_address_they_have() {
        let policy = AddressPolicy::default();
        policy.add_own_listener("127.0.0.1:6443".parse().unwrap());
        policy.add_own_listener("0.0.0.0:6444".parse().unwrap());
        for addr in ["127.0.0.1:6443", "[::ffff:127.0.0.1]:6443", "127.0.0.1:6444", "127.9.9.9:6444"] {
            assert_eq!(policy.check(addr.parse().unwrap()), Err(Refusal::OwnListener), "{addr}");
        }
        for addr in ["127.0.0.2:6443", "127.0.0.1:6445", "192.0.2.1:6444"] {
            assert_eq!(policy.check(addr.parse().unwrap()), Ok(()), "{addr}");
        }
    }

    #[test]
    fn allowed_ranges_narrow_and_never_widen() {
        let policy =
            AddressPolicy::new(vec!["10.0.0.0/8".parse().unwrap(), "169.254.0.0/16".parse().unwrap()]);
        assert_eq!(policy.check("10.1.2.3:443".parse().unwrap()), Ok(()));
        assert_eq!(policy.check("[::ffff:10.1.2.3]:443".parse().unwrap()), Ok(()));
        assert_eq!(policy.check("192.0.2.1:443".parse().unwrap()), Err(Refusal::NotAllowed));
        assert_eq!(policy.check("169.254.1.1:443".parse().unwrap()), Err(Refusal::LinkLocal));
    }
}
