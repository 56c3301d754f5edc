//! What Services are given out of bounded pools: addresses and node ports. Choosing is pure; the store has who has what.
//!
//! An address in use is an IPAddress, which clients see; a port in use is a record that nobody serves. Both are keyed by
//! what they stand for and written in the transaction of their Service with the expectation that they are absent: two
//! writers, in one process or in several, cannot give out the same, and nothing is left behind when a write fails.

mod addresses;
mod held;
mod ports;
mod records;
mod span;

pub use held::{HeldPort, NodePorts};

pub(crate) use addresses::{AddressPool, Family, Range};
pub(crate) use ports::PortPool;
pub(crate) use records::{Claims, addresses as addresses_in_use, ports as ports_in_use};

/// Why a pool refuses, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// Somebody has the address.
    #[error("provided IP is already allocated")]
    AddressTaken,
    /// No range holds the address.
    #[error("the provided network does not match the current range")]
    AddressOutside,
    /// Somebody has the port.
    #[error("provided port is already allocated")]
    PortTaken,
    /// The port lies outside of the range.
    #[error("provided port is not in the valid range. The range of valid ports is {0}-{1}")]
    PortOutside(u16, u16),
    /// Everything is taken.
    #[error("range is full")]
    Full,
}
