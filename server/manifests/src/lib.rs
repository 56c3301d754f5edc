//! A folder of manifests (`--manifests`): its objects are applied in order before the server is ready, again when files
//! change, and deleted when they leave the folder and that is asked for.
//!
//! Everything is written through the registry, as users write, but for what other API servers keep, which are asked through a
//! trait. Knows no gRPC and no HTTP, and names three kinds only: definitions, which are waited for, namespaces, which are deleted
//! last, and APIServices, which say what others keep.

mod aggregated;
mod apply;
mod check;
mod document;
mod folder;
mod follow;
mod identity;
mod log;
mod metrics;
mod other_servers;
mod pass;
mod prune;
mod reading;
mod record;
mod requests;
mod settings;
mod split;
mod state;

pub use check::{Finding, Report, check};
pub use document::list_items;
pub use follow::Manifests;
pub use other_servers::{OtherResource, OtherServers};
pub use requests::Requests;
pub use settings::{MAX_DEPTH, MAX_DOCUMENTS, MAX_FILE_BYTES, Settings};
pub use state::{ManifestOf, State, Unapplied};
