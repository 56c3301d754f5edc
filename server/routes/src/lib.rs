//! What may be reached: from APIServices and endpoints to a versioned table of routes.
//!
//! [`informers`] put events of three resources into the [`Index`]; the [`compiler`](compile) turns what they touch into routes; the
//! [`Publisher`] offers snapshots and deltas to whoever streams them to facades. No network, no clock, no write: this
//! crate never asks whether a backend answers, it reads that off the Available condition.

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
