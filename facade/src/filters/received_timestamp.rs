//! RequestReceivedTimestamp: from here deadlines and latencies count.

use std::time::Instant;

use http::Response;

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;

/// See the module.
#[derive(Debug, Default)]
pub struct ReceivedTimestamp;

impl Filter for ReceivedTimestamp {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        x.received = Instant::now();
        next.handle(x).await
    }
}
