//! Route table: compiles APIServices, Services and EndpointSlices into a versioned table of routes.
//!
//! [`informers`] put events of the three resources into the [`RouteIndex`]; the [`compiler`](compile) compiles the affected
//! routes; the [`Publisher`] provides snapshots and deltas for the streams to facades. No network, no clock, no writes: the
//! availability of a backend is read from the condition `Available`.

mod backend_addresses;
mod compiler;
mod entry;
mod explain;
mod index;
pub mod informers;
mod publish;
mod routes;
mod settings;
mod table;
mod webhooks;

#[cfg(test)]
mod tests;

pub use compiler::{CompiledRoute, Shadow, compile};
pub use entry::{TableEntry, TableEntryKey};
pub use explain::{
    ExplainSource, FacadeAck, Manifest, MirrorReport, NoExplainSource, ReachObservation, ReachStage, Stage,
    parse_group_version,
};
pub use index::RouteIndex;
pub use publish::{Publisher, TableDelta, TableSnapshot, TableSubscription, TableUpdate};
pub use routes::Routes;
pub use settings::{LocalGroupVersion, Settings};
