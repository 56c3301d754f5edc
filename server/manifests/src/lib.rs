//! The manifests folder (`--manifests`): its objects are applied in order before the server is ready and again when files
//! change; with pruning enabled, they are deleted when their manifests are removed.
//!
//! Objects are written through the registry with the verbs of users, except those on other API servers, which a trait abstracts.
//! The crate does not depend on gRPC or HTTP. Three kinds have special rules: definitions, which are awaited; namespaces, which
//! are deleted last; and APIServices, which determine the documents for other servers.

mod aggregated_applier;
mod apply;
mod check;
mod content;
mod document;
mod folder;
mod follow;
mod foreign_servers;
mod identity;
mod log;
mod metrics;
mod pass;
mod prune;
mod record;
mod requests;
mod settings;
mod split;
mod state;

pub use check::{Finding, FolderReport, check};
pub use document::list_items;
pub use follow::Manifests;
pub use foreign_servers::{ForeignApiClient, ForeignResource};
pub use requests::Requests;
pub use settings::{MAX_DEPTH, MAX_DOCUMENTS, MAX_FILE_BYTES, Settings};
pub use state::{ApiServiceManifest, FolderState, UnappliedFolder};
