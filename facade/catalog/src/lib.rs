//! Builds and serves discovery and OpenAPI documents of all served APIs.
//!
//! The facade creates [`ServedApis`] from the configuration stream and calls [`Catalog::respond`]; documents are built for the
//! first request and kept until an API changes. Does not depend on HTTP serving, on the source of documents (a
//! [`DocumentSource`]), nor on kinds.

mod catalog;
mod catalog_state;
mod compressed_cache;
mod discovery;
mod document;
mod etag;
mod lazy_document;
mod openapi;
mod request;
mod served_apis;
mod snapshot;
mod state;
mod workers;

pub use catalog::{Catalog, ServedBy};
pub use catalog_state::Settings;
pub use discovery::{AddressRule, PeerGroups};
pub use document::{DocumentError, DocumentFuture, DocumentSource};
pub use request::{Document, Reply, Request};
pub use served_apis::ServedApis;
pub use state::Change;

#[cfg(test)]
mod tests;
