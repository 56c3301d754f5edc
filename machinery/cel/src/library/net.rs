//! IP addresses and networks as Go reads and prints them, with its sentences about what is none.

mod address;
mod network;

pub(super) use address::parse_address;
pub use network::Network;
