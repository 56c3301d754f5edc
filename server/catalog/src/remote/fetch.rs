//! Interface for requests to backends: a GET with limits.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use portico_machinery::route::Backend;

/// A GET request to a backend.
#[derive(Clone, Copy, Debug)]
pub struct GetRequest<'a> {
    /// Address and trust settings of the backend.
    pub backend: &'a Backend,
    /// Path and query.
    pub path: &'a str,
    /// Value of `Accept`; empty to omit the header.
    pub accept: &'a str,
    /// Value of `If-None-Match`; empty to omit the header.
    pub if_none_match: &'a str,
    /// User name in `X-Remote-User`.
    pub user: &'static str,
    /// Groups in `X-Remote-Group`. Backends with addresses from an annotation never get `system:masters`.
    pub groups: &'static [&'static str],
    /// Time from the start of the dial to the last byte of the response.
    pub timeout: Duration,
    /// Maximum size of the response body in bytes; longer ones are failures.
    pub max_body: usize,
}

/// Response with any status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchedDocument {
    pub status: u16,
    /// Value of `Content-Type`; empty if absent.
    pub content_type: String,
    /// Value of `ETag`; empty if absent.
    pub etag: String,
    /// Complete body.
    pub body: Bytes,
}

/// No complete response: no address, no connection, a timeout, or a body that is too long or incomplete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FetchFailure(pub String);

/// Future of a response.
pub type FetchFuture<'a> = BoxFuture<'a, Result<FetchedDocument, FetchFailure>>;

/// Sends requests to backends. The assembly implements it with the kit's dialer; tests use a script.
pub trait Fetch: Send + Sync {
    /// Sends a GET request; redirects are not followed.
    fn get<'a>(&'a self, get: GetRequest<'a>) -> FetchFuture<'a>;
}
