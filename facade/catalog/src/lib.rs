//! Merges and serves discovery and OpenAPI: what the control service says is served, as clients ask for it.
//!
//! The facade feeds [`Catalog`] from the stream and mounts [`Catalog::respond`]; everything is computed at first ask
//! and kept until something that shows changes. It must not know how requests arrive, where documents come from
//! (a [`DocumentSource`]), nor any kind.

mod catalog;
mod discovery;
mod document;
mod openapi;
mod request;
mod snapshot;
mod state;

pub use catalog::{Catalog, Settings};
pub use discovery::AddressRule;
pub use document::{DocumentError, DocumentFuture, DocumentSource};
pub use request::{Document, Reply, Request};
pub use state::Change;

#[cfg(test)]
mod tests;
