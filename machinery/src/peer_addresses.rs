//! Addresses of the servers behind one address, in the form that the control service sends to facades.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Feature gate for requests between servers behind one address.
pub const GATE: &str = "UnknownVersionInteroperabilityProxy";

/// Name of this server among its peers, and the peers; one line each in text form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerAddresses {
    /// Name of this server's identity Lease.
    pub own_name: String,
    /// Other servers, by name.
    pub peers: Vec<PeerAddress>,
}

/// Address of another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// Name of the server's identity Lease.
    pub name: String,
    /// Holder of the Lease, which changes when the server restarts.
    pub holder: String,
    /// Address of the server's HTTPS endpoint.
    pub address: SocketAddr,
}

/// Text that is not a peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a peer: expected name, holder and address", portico_gostd::strconv::quote(.0))]
pub struct InvalidPeer(String);

impl PeerAddress {
    /// Creates a peer from the content of its Lease. Returns `None` if a field is missing or contains white space.
    #[must_use]
    pub fn new(name: &str, holder: &str, address: &str) -> Option<Self> {
        let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
        let address = address.parse().ok().filter(|_| is_word(name) && is_word(holder))?;
        Some(Self { name: name.to_owned(), holder: holder.to_owned(), address })
    }
}

impl fmt::Display for PeerAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.own_name)?;
        self.peers.iter().try_for_each(|peer| write!(f, "\n{} {} {}", peer.name, peer.holder, peer.address))
    }
}

impl FromStr for PeerAddresses {
    type Err = InvalidPeer;

    fn from_str(text: &str) -> Result<Self, InvalidPeer> {
        let mut lines = text.lines();
        let own_name = lines.next().unwrap_or_default().to_owned();
        Ok(Self { own_name, peers: lines.map(str::parse).collect::<Result<_, _>>()? })
    }
}

impl FromStr for PeerAddress {
    type Err = InvalidPeer;

    fn from_str(line: &str) -> Result<Self, InvalidPeer> {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        Self::new(word(), word(), word()).ok_or_else(|| InvalidPeer(line.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        let peer = |name: &str, address: &str| PeerAddress {
            name: name.to_owned(),
            holder: format!("{name}_1"),
            address: address.parse().unwrap(),
        };
        for peers in [vec![], vec![peer("a", "192.0.2.1:6443"), peer("b", "[2001:db8::1]:443")]] {
            let addresses = PeerAddresses { own_name: "own".to_owned(), peers };
            assert_eq!(addresses.to_string().parse(), Ok(addresses));
        }
    }

    #[test]
    fn lines_with_missing_fields_are_rejected() {
        assert_eq!(PeerAddress::new("a", "b\nc", "192.0.2.1:1"), None);
        for line in ["a", "a b", "a b host:1", "a b 192.0.2.1", " b 192.0.2.1:1"] {
            assert_eq!(format!("own\n{line}").parse::<PeerAddresses>(), Err(InvalidPeer(line.to_owned())));
        }
    }
}
