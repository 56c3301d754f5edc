//! Endpoints of Services: `endpointslice-controller`, `endpoints-controller` and `endpointslice-mirroring-controller`.
//!
//! Decisions are pure and do not depend on the store. Services and pods are matched within their namespace.

mod address;
pub mod endpoints;
pub mod mirroring;
pub mod node;
pub mod pod;
pub mod service;
pub mod slice;
pub mod slice_writer;
pub mod slices;
pub mod subsets;
pub mod trigger_times;
pub mod triggers;
