//! RequestReceivedTimestamp: from here deadlines and latencies count.

use std::time::Instant;

use crate::request::{ReceivedAt, Request};

/// See the module.
pub fn received_timestamp(mut request: Request) -> Request {
    request.extensions_mut().insert(ReceivedAt(Instant::now()));
    request
}
