//! Merges and serves discovery and OpenAPI: what the control service says is served, as clients ask for it.
//!
//! The facade makes [`ServedApis`] of what the stream says and mounts [`Catalog::respond`]; everything is computed for the
//! first request and kept until something that shows changes. It must not know how requests arrive, where documents come
//! from (a [`DocumentSource`]), nor any kind.

mod catalog;
mod compressed;
mod discovery;
mod document;
mod etag;
mod lazy_document;
mod openapi;
mod request;
mod served_apis;
mod shared;
mod snapshot;
mod state;
mod workers;

pub use catalog::{Catalog, ServedBy};
pub use discovery::{AddressRule, PeerGroups};
pub use document::{DocumentError, DocumentFuture, DocumentSource};
pub use request::{Document, Reply, Request};
pub use served_apis::ServedApis;
pub use shared::Settings;
pub use state::Change;

#[cfg(test)]
mod tests;
