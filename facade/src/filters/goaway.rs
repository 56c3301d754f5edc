//! ProbabilisticGoaway (`--goaway-chance`): now and then an HTTP/2 client is asked to connect anew, so that load
//! spreads over facades. The request itself is served.

use http::Response;

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;

/// The greatest chance that may be configured.
pub const MAX_CHANCE: f64 = 0.02;

/// See the module.
#[derive(Debug)]
pub struct Goaway {
    /// 0 to [`MAX_CHANCE`].
    pub chance: f64,
}

impl Filter for Goaway {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        if x.is_http2() && rand::random::<f64>() < self.chance {
            x.connection.go_away();
        }
        next.handle(x).await
    }
}
