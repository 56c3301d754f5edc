//! What outlives a handler: a request is over when its last response byte is, not when its head is.
//!
//! A completion holds the request's record (its tokens and its deadline) and its metrics.
//! Dropping it, in whatever way the body ends, gives everything back and counts the request once. While the client
//! takes nothing hyper does not poll the body: the exchange, which others watch, ends the request then.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::Frame;

use crate::connection::{ActiveRequestGuard, Exchange};
use crate::metrics::{Ended, Labels, RequestMetrics};
use crate::record::RequestRecord;

/// Lives in the response body; see the module.
pub struct ResponseCompletion {
    /// Declared before `busy`: a connection is idle when all else is given back.
    record: Option<Arc<RequestRecord>>,
    busy: Option<ActiveRequestGuard>,
    exchange: Arc<Exchange>,
    /// Only of short requests.
    deadline: Option<Instant>,
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
    bytes: u64,
    labels: Option<Labels>,
    received: Instant,
    code: u16,
    metrics: Arc<RequestMetrics>,
    /// What is left of a frame that is too large to be sent at once.
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
    /// The completion of a request that arrived at `received` and was answered with `code`.
    pub fn new(
        record: Arc<RequestRecord>,
        exchange: Arc<Exchange>,
        labels: Labels,
        received: Instant,
        code: u16,
        metrics: Arc<RequestMetrics>,
    ) -> Self {
        metrics.begin(&labels);
        let deadline = record.deadline();
        exchange.respond(deadline);
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

    /// The connection is busy until the response is out.
    pub fn set_busy(&mut self, busy: ActiveRequestGuard) {
        self.busy = Some(busy);
    }

    /// Gives back what the request holds; it goes on to be counted as long as this lives.
    pub fn release(&mut self) {
        self.record = None;
    }

    /// What was left of the last frame.
    pub fn take_rest(&mut self) -> Option<Bytes> {
        self.rest.take()
    }

    /// Bytes that are left of the last frame.
    #[must_use]
    pub fn rest(&self) -> usize {
        self.rest.as_ref().map_or(0, Bytes::len)
    }

    /// As much of a frame as may be sent now; it is counted.
    pub fn send(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        self.exchange.offer();
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

    /// The body has nothing to send yet.
    pub fn wait_for_source(&self) {
        self.exchange.wait_for_source();
    }

    /// The body ended with an error after the head was sent.
    pub fn broke(&mut self) {
        if let Some(labels) = &self.labels {
            self.metrics.aborted(labels);
        }
    }

    /// Whether the deadline has passed; if not, the task is woken when it does.
    pub fn expired(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(deadline) = self.deadline else { return false };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline.into())));
        let expired = sleep.as_mut().poll(cx).is_ready();
        if expired {
            self.deadline = None;
            if let Some(labels) = &self.labels {
                self.metrics.terminated(labels, 504);
            }
        }
        expired
    }
}

impl Drop for ResponseCompletion {
    fn drop(&mut self) {
        if let Some(labels) = self.labels.take() {
            if self.exchange.is_aborted() {
                self.metrics.terminated(&labels, 504);
                self.metrics.aborted(&labels);
            }
            let record = self.record.as_deref();
            self.metrics.end(
                &labels,
                &Ended {
                    code: self.code,
                    took: self.received.elapsed(),
                    left_out: record.map_or(Duration::ZERO, RequestRecord::left_out),
                    bytes: self.bytes,
                    deprecated: record.and_then(|record| record.deprecated.get()),
                },
            );
        }
        self.record = None;
    }
}
