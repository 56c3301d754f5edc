//! Record of a request: data that inner layers report to outer ones, and resources that are held until the last byte is sent.
//!
//! The lifecycle layer creates a record for each request; inner layers find it in the extensions of the request. Everything is
//! set once. The tokens are released with the last reference: that of the response's completion, or of a task that outlives the
//! response (a watch over WebSocket).

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use portico_flow::{Seat, WatchGuard};
use portico_kit::request_trace::RequestTrace;

use crate::in_flight::Permit;
use crate::metrics::KnownResource;
use crate::wait_group::Token;
use portico_auditor::{AuditedRequest, Latency};

/// Record of one request.
#[derive(Default)]
pub struct RequestRecord {
    /// Time by which the response must be complete; unset for long-running requests.
    pub deadline: OnceLock<Instant>,
    /// Token of the wait group of short requests or of watches.
    pub wait_group: OnceLock<Token>,
    /// Permit of the in-flight limiter.
    pub permit: OnceLock<Permit>,
    /// Audit event; unset if the request is not audited.
    pub audited: OnceLock<Arc<AuditedRequest>>,
    /// Duration of authentication, which ends before the audit layer.
    pub authentication_took: OnceLock<Duration>,
    /// Release that removes the API, if it is deprecated; empty if unknown.
    pub deprecated: OnceLock<String>,
    /// Registration of a watch, which the cost estimate of writes includes.
    pub watch: OnceLock<WatchGuard>,
    /// Trace of the request, if requested.
    pub trace: OnceLock<Arc<RequestTrace>>,
    seat: Mutex<Option<Seat>>,
    warnings: Mutex<Vec<String>>,
    aggregated: AtomicBool,
    /// State of knowledge about the resource, as a [`KnownResource`].
    known_resource: AtomicU8,
    /// Time that latency objectives exclude, in microseconds.
    excluded_micros: AtomicU64,
}

impl RequestRecord {
    /// Deadline of the request, if any.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline.get().copied()
    }

    /// Returns [`RequestRecord::audited`].
    pub fn audited(&self) -> Option<&Arc<AuditedRequest>> {
        self.audited.get()
    }

    /// Returns [`RequestRecord::trace`].
    pub fn trace(&self) -> Option<&Arc<RequestTrace>> {
        self.trace.get()
    }

    /// Records the duration of a part of the request.
    pub fn record_latency(&self, part: Latency, took: Duration) {
        if part == Latency::QueueWait {
            self.exclude_time(took);
        }
        if let Some(audited) = self.audited() {
            audited.record_latency(part, took);
        }
    }

    /// Excludes time from latency objectives that was spent outside of this server.
    pub fn exclude_time(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.excluded_micros.fetch_add(took, Ordering::Relaxed);
    }

    /// Total time that latency objectives exclude.
    pub fn excluded_time(&self) -> Duration {
        Duration::from_micros(self.excluded_micros.load(Ordering::Relaxed))
    }

    /// Stores the seat of priority and fairness on which the request runs.
    pub fn set_seat(&self, seat: Seat) {
        *self.seat.lock() = Some(seat);
    }

    /// Takes the seat, to release it before the request ends.
    pub fn release_seat(&self) -> Option<Seat> {
        self.seat.lock().take()
    }

    /// Adds warnings, each of which becomes a `Warning` header of the response.
    pub fn warn(&self, texts: impl IntoIterator<Item = String>) {
        self.warnings.lock().extend(texts);
    }

    /// Takes all warnings recorded so far.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock())
    }

    /// Records that a backend serves the request.
    pub fn set_aggregated(&self) {
        self.aggregated.store(true, Ordering::Relaxed);
    }

    /// Records whether the resource is served: only then its name becomes a metric label.
    pub fn set_known_resource(&self, is_known: bool) {
        let known_resource = if is_known { KnownResource::Yes } else { KnownResource::No };
        self.known_resource.store(known_resource as u8, Ordering::Relaxed);
    }

    /// Records that the backend has not confirmed the resource.
    pub fn set_resource_known_if_seen(&self) {
        self.known_resource.store(KnownResource::IfSeen as u8, Ordering::Relaxed);
    }

    /// Server of the chain that responds, for metrics: `apiserver` or `aggregator`.
    pub fn component(&self) -> &'static str {
        if self.aggregated.load(Ordering::Relaxed) { "aggregator" } else { "apiserver" }
    }

    /// Returns the value of [`RequestRecord::set_known_resource`].
    pub fn known_resource(&self) -> KnownResource {
        let value = self.known_resource.load(Ordering::Relaxed);
        [KnownResource::IfSeen, KnownResource::Yes]
            .into_iter()
            .find(|k| *k as u8 == value)
            .unwrap_or_default()
    }
}
