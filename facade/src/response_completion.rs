//! State of a request that outlives its handler: a request ends with the last byte of its response, not with the head.
//!
//! A completion holds the record of the request (its tokens and its deadline) and its metrics. Dropping it, when the body ends
//! for any reason, releases everything and counts the request once. While the client reads nothing, hyper does not poll the body:
//! the owner of the transport, which watches the exchange, then ends the request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::Frame;

use crate::connection::{ActiveRequestGuard, Exchange};
use crate::metrics::{RequestMetrics, RequestOutcome, RequestSeries};
use crate::record::RequestRecord;

/// Owned by the response body; released when it ends.
pub struct ResponseCompletion {
    /// Declared before `busy`: the connection becomes idle after everything else is released.
    record: Option<Arc<RequestRecord>>,
    busy: Option<ActiveRequestGuard>,
    exchange: Arc<Exchange>,
    /// Set for short requests.
    deadline: Option<Instant>,
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
    bytes: u64,
    labels: Option<RequestSeries>,
    received: Instant,
    code: u16,
    metrics: Arc<RequestMetrics>,
    /// Rest of a frame that is too large to be sent at once.
    rest: Option<Bytes>,
}

/// Size of a frame of a streamed response over HTTP/2.
///
/// HTTP/2 accepts a frame of any size once there is window for a byte. Parts of larger frames would wait in memory after the
/// response is counted as sent.
///
/// Limit (Serving, bytes): larger frames are split.
const MAX_STREAM_FRAME: usize = 64 * 1024;

impl ResponseCompletion {
    /// Creates the completion of a request that arrived at `received` and gets a response with `code`.
    pub fn new(
        record: Arc<RequestRecord>,
        exchange: Arc<Exchange>,
        labels: RequestSeries,
        received: Instant,
        code: u16,
        metrics: Arc<RequestMetrics>,
    ) -> Self {
        metrics.record_start(&labels);
        let deadline = record.deadline();
        exchange.start_response(deadline);
        Self {
            record: Some(record),
            busy: None,
            exchange,
            deadline,
            sleep: None,
            bytes: 0,
            labels: Some(labels),
            received,
            code,
            metrics,
            rest: None,
        }
    }

    /// Keeps the connection busy until the response is sent.
    pub fn set_busy(&mut self, busy: ActiveRequestGuard) {
        self.busy = Some(busy);
    }

    /// Releases the resources of the request; its metrics continue until the completion is dropped.
    pub fn release(&mut self) {
        self.record = None;
    }

    /// Takes the rest of the last frame.
    pub fn take_rest(&mut self) -> Option<Bytes> {
        self.rest.take()
    }

    /// Number of bytes of the rest of the last frame.
    #[must_use]
    pub fn rest_len(&self) -> usize {
        self.rest.as_ref().map_or(0, Bytes::len)
    }

    /// Returns the part of a frame that may be sent now, and counts its bytes.
    pub fn next_part(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        self.exchange.mark_offered();
        let frame = match frame.into_data() {
            Ok(mut data) => {
                if self.exchange.is_stream() && data.len() > MAX_STREAM_FRAME {
                    self.rest = Some(data.split_off(MAX_STREAM_FRAME));
                }
                Frame::data(data)
            }
            Err(trailers) => trailers,
        };
        self.bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
        frame
    }

    /// Records that the body has no data to send.
    pub fn wait_for_source(&self) {
        self.exchange.wait_for_source();
    }

    /// Records that the body ended with an error after the head was sent.
    pub fn record_failure(&mut self) {
        if let Some(labels) = &self.labels {
            self.metrics.record_abort(labels);
        }
    }

    /// True if the deadline has passed; if not, the task is woken when it does.
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(deadline) = self.deadline else { return false };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline.into())));
        let expired = sleep.as_mut().poll(cx).is_ready();
        if expired {
            self.deadline = None;
            if let Some(labels) = &self.labels {
                self.metrics.record_termination(labels, 504);
            }
        }
        expired
    }
}

impl Drop for ResponseCompletion {
    fn drop(&mut self) {
        if let Some(labels) = self.labels.take() {
            if self.exchange.is_aborted() {
                self.metrics.record_termination(&labels, 504);
                self.metrics.record_abort(&labels);
            }
            let record = self.record.as_deref();
            self.metrics.record_end(
                &labels,
                &RequestOutcome {
                    code: self.code,
                    took: self.received.elapsed(),
                    excluded: record.map_or(Duration::ZERO, RequestRecord::excluded_time),
                    bytes: self.bytes,
                    deprecated: record.and_then(|record| record.deprecated.get()),
                },
            );
        }
        self.record = None;
    }
}
