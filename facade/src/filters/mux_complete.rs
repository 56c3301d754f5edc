//! MuxAndDiscoveryComplete: remembers whether all paths were installed when the request arrived.
//!
//! The stamp stays even if they are installed while the request runs: garbage collectors take a 404 as "gone".

use http::Response;
use portico_kit::lifecycle::Signal;

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;

/// See the module.
#[derive(Debug)]
pub struct MuxComplete {
    /// `MuxAndDiscoveryComplete`
    pub complete: Signal,
}

impl Filter for MuxComplete {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        x.before_mux_complete = !self.complete.is_signaled();
        next.handle(x).await
    }
}
