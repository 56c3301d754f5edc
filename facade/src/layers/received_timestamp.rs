//! RequestReceivedTimestamp: records the arrival time, from which deadlines and latencies count.

use std::time::Instant;

use crate::request::{ReceivedAt, Request};

/// Records the arrival time of a request.
pub fn received_timestamp(mut request: Request) -> Request {
    request.extensions_mut().insert(ReceivedAt(Instant::now()));
    request
}
