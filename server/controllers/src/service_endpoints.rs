//! Where the pods of Services are: `endpointslice-controller`, `endpoints-controller` and `endpointslice-mirroring-controller`.
//!
//! What they decide is pure and knows no store. A Service finds its pods, and a pod its Services, within their namespace.

mod address;
pub mod carry_out;
pub mod endpoints;
pub mod mirroring;
pub mod node;
pub mod pod;
pub mod service;
pub mod slice;
pub mod slices;
pub mod subsets;
pub mod trigger_times;
pub mod triggers;
