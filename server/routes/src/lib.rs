//! Route table: compiles APIServices, Services and EndpointSlices into a versioned table of routes.
//!
//! [`informers`] put events of the three resources into the [`RouteIndex`]; the [`compiler`](compile) compiles the affected
//! routes; the [`Publisher`] provides snapshots and deltas for the streams to facades. No network, no clock, no writes: the
//! availability of a backend is read from the condition `Available`.

mod compiler;
mod entry;
mod explain;
mod index;
pub mod informers;
mod publish;
mod registered;
mod routes;
mod settings;
mod table;
mod webhooks;

#[cfg(test)]
mod tests;

pub use compiler::{Compiled, Shadow, compile};
pub use entry::{Entry, EntryKey};
pub use explain::{
    Ack, Evidence, Manifest, Mirrored, NoEvidence, ReachStage, Reached, Stage, group_version_of,
};
pub use index::Index;
pub use publish::{Delta, Publisher, Snapshot, Subscription, Update};
pub use routes::Routes;
pub use settings::{Installed, Settings};
