//! Code of built-in resources: behavior that the data files of the kinds cannot express.
//!
//! Strategies, actions and connections access objects through the traits of the registry. [`table`] has a row for each
//! resource that has code. This crate does not depend on SQL, gRPC or HTTP.

mod actions;
mod allocation;
mod connections;
mod escalation;
mod gated_fields;
mod strategies;
mod table;

pub use allocation::{NodePortAllocation, NodePortAllocations};
pub use strategies::{BuiltinFlowObject, builtin_flow_objects};
pub use table::{table, table_with_gates};

#[cfg(test)]
mod growth_tests;
