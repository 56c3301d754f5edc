//! Discovery and OpenAPI of everything that is served: built-in kinds, custom resources, and APIs of backends.
//!
//! [`Catalog`] is the entry point of the crate: it generates the fragments of built-in kinds, receives definitions and routes,
//! fetches the documents of backends in the background, and publishes entries and [`Documents`], which are streamed to facades.
//! The crate does not depend on gRPC, SQL, the way to reach a backend (a [`Fetch`]), or specific kinds.

mod catalog;
mod custom;
mod documents;
mod entries;
mod local;
mod remote;

pub use catalog::{Catalog, Settings};
pub use custom::Definition;
pub use documents::Documents;
pub use entries::ServedReader;
pub use local::{Fragment, new_fragment};
pub use remote::{Fetch, FetchFailure, FetchFuture, FetchedDocument, GetRequest};
