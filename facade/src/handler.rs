//! What stands behind a layer: a tower service that answers every request.

use std::convert::Infallible;

use tower::Service;

use crate::request::{Request, Response};

/// Answers requests, always, and is always ready: a name for what layers, director and server ask of a service.
///
/// Each connection has a clone of its own.
pub trait Handler:
    Service<Request, Response = Response, Error = Infallible, Future: Send + 'static> + Clone + Send + 'static
{
}

impl<S> Handler for S where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + 'static
{
}

/// How it ends.
pub type Answer = Result<Response, Infallible>;
