//! Built-in resources: what code adds to the data of each kind.
//!
//! Strategies, actions and connections see objects through the registry's traits; one `table` has a row for each
//! resource. Knows no SQL, no gRPC and no HTTP.

mod actions;
mod allocation;
mod connections;
mod escalation;
mod gated;
mod strategies;
mod table;

pub use allocation::{HeldPort, NodePorts};
pub use strategies::{FlowObject, flow_objects};
pub use table::{table, table_with};

#[cfg(test)]
mod growth_tests;
