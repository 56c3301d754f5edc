//! The service behind a layer, which responds to every request.

use std::convert::Infallible;

use tower::Service;

use crate::request::{Request, Response};

/// Service that never fails and is always ready: the common bounds of layers, director and server.
///
/// Each connection has its own clone.
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

/// Output of a handler.
pub type HandlerResult = Result<Response, Infallible>;
