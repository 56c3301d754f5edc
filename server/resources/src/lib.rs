//! Code of built-in resources: behavior that the data files of the kinds cannot express.
//!
//! Strategies, actions and connections access objects through the traits of the registry. [`table`] has a row for each
//! resource that has code. This crate does not depend on SQL, gRPC or HTTP.

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
