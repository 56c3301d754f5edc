//! Merges and serves discovery and OpenAPI: what the control service says is served, as clients ask for it.
//!
//! The facade feeds [`Catalog`] from the stream and mounts [`Catalog::respond`]; everything is computed at first ask
//! and kept until something that shows changes. It must not know how requests arrive, where documents come from
//! (a [`DocumentSource`]), nor any kind.

mod catalog;
mod compressed;
mod discovery;
mod document;
mod etag;
mod openapi;
mod request;
mod shared;
mod snapshot;
mod state;

pub use catalog::Catalog;
pub use discovery::AddressRule;
pub use document::{DocumentError, DocumentFuture, DocumentSource};
pub use request::{Document, Reply, Request};
pub use shared::Settings;
pub use state::Change;

#[cfg(test)]
mod tests;
