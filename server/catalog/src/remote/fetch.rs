//! The way to a backend, as this module needs it: one bounded GET.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use portico_machinery::route::Backend;

/// One GET of a backend.
#[derive(Clone, Copy, Debug)]
pub struct Get<'a> {
    /// Where to dial and whom to trust.
    pub backend: &'a Backend,
    /// Path and query.
    pub path: &'a str,
    /// `Accept`; empty for none.
    pub accept: &'a str,
    /// `If-None-Match`; empty for none.
    pub if_none_match: &'a str,
    /// The user in `X-Remote-User`.
    pub user: &'static str,
    /// The groups in `X-Remote-Group`. A backend dialed by address of an annotation never gets `system:masters`.
    pub groups: &'static [&'static str],
    /// From the first step of the dial to the last byte.
    pub timeout: Duration,
    /// A longer body is a failure, in bytes.
    pub max_body: usize,
}

/// Any answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// `Content-Type`, empty when absent.
    pub content_type: String,
    /// `ETag`, empty when absent.
    pub etag: String,
    /// The whole body.
    pub body: Bytes,
}

/// No answer: nowhere to dial, not reached, too slow, too long, cut off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FetchFailure(pub String);

/// An answer on its way.
pub type FetchFuture<'a> = BoxFuture<'a, Result<Answer, FetchFailure>>;

/// Reaches backends. Assembly implements it over the kit's dialing; tests over a script.
pub trait Fetch: Send + Sync {
    /// GETs once; redirects are not followed.
    fn get<'a>(&'a self, get: Get<'a>) -> FetchFuture<'a>;
}
