//! What outlives a handler: a request is over when its last response byte is, not when its head is.
//!
//! A tail holds the request's tokens (wait groups, in-flight permits), its deadline and its metrics.
//! Dropping it, in whatever way the body ends, gives everything back and counts the request once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Instant;

use crate::filters::max_in_flight::Permit;
use crate::filters::wait_group::Token;
use crate::metrics::{Labels, RequestMetrics};
use crate::serve::Busy;

/// Tokens that filters took for this request.
#[derive(Debug, Default)]
pub struct Guards {
    /// Of the wait group of short requests.
    pub wait: Option<Token>,
    /// Of the wait group of watches.
    pub watch: Option<Token>,
    /// Of the in-flight limiter.
    pub permit: Option<Permit>,
    /// Of the connection.
    pub busy: Option<Busy>,
}

/// Lives in the response body; see the module.
pub struct Tail {
    guards: Guards,
    /// Only of short requests.
    deadline: Option<Instant>,
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
    bytes: u64,
    labels: Option<Labels>,
    received: Instant,
    code: u16,
    metrics: Arc<RequestMetrics>,
}

impl Tail {
    /// A tail of a request that arrived at `received` and was answered with `code`.
    pub fn new(
        guards: Guards,
        deadline: Option<Instant>,
        labels: Labels,
        received: Instant,
        code: u16,
        metrics: Arc<RequestMetrics>,
    ) -> Self {
        metrics.begin(&labels);
        Self { guards, deadline, sleep: None, bytes: 0, labels: Some(labels), received, code, metrics }
    }

    /// Counts bytes of the body.
    pub fn sent(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
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

impl Drop for Tail {
    fn drop(&mut self) {
        if let Some(labels) = self.labels.take() {
            self.metrics.end(&labels, self.code, self.received.elapsed(), self.bytes);
        }
        self.guards = Guards::default();
    }
}
