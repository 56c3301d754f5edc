//! Allocation of cluster IP addresses and node ports to Services.
//!
//! The selection of a free address or port is a pure function; the store holds the allocations. An allocated address is an
//! IPAddress object, which clients can read. An allocated port is a record that the API does not serve. Both are named
//! after the address or port and are created in the transaction of their Service with the precondition that they do not
//! exist. Two writers, in one process or in several, therefore cannot allocate the same address or port, and a failed
//! write allocates nothing.

mod addresses;
mod node_ports;
mod number_range;
mod ports;
mod records;

pub use node_ports::{NodePortAllocation, NodePortAllocations};

pub(crate) use addresses::{AddressPool, AddressRange, IpFamily};
pub(crate) use ports::PortPool;
pub(crate) use records::{AllocationChanges, addresses as addresses_in_use, ports as ports_in_use};

/// Failure of an allocation, with the message of upstream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AllocationError {
    /// The address is already allocated.
    #[error("provided IP is already allocated")]
    AddressTaken,
    /// No range contains the address.
    #[error("the provided network does not match the current range")]
    AddressOutOfRange,
    /// The port is already allocated.
    #[error("provided port is already allocated")]
    PortTaken,
    /// The port is outside of the range.
    #[error("provided port is not in the valid range. The range of valid ports is {0}-{1}")]
    PortOutOfRange(u16, u16),
    /// All addresses or ports are allocated.
    #[error("range is full")]
    Full,
}
