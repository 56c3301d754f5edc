//! What is served here: discovery and OpenAPI fragments, of built-in kinds, of custom resources, and fetched from
//! backends.
//!
//! [`Catalog`] is the crate's entry point: it makes the built-in fragments, is given definitions and routes, fetches what
//! backends serve in the background, and offers the resulting entries and [`Documents`] to whoever streams them to
//! facades. It must not know gRPC, SQL, how a backend is reached (a [`Fetch`]), nor any kind by name.

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
pub use local::{Fragment, fragment};
pub use remote::{Answer, Fetch, FetchFailure, FetchFuture, Get};
