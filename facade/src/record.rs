//! What inner layers report to outer ones about a request, and what is kept until its last byte is out.
//!
//! The lifecycle layer makes one for each request and owns it; inner layers find it in the request's extensions.
//! Everything is set once. The tokens go back when the last holder is gone: the response's completion, or a task that goes on
//! after the response (a watch over WebSocket).

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use portico_flow::{Seat, WatchGuard};
use portico_kit::walk::Walk;

use crate::in_flight::Permit;
use crate::metrics::KnownResource;
use crate::wait_group::Token;
use portico_auditor::{Audited, Latency};

/// See the module.
#[derive(Default)]
pub struct RequestRecord {
    /// When the answer must have been given; none for long-running requests.
    pub deadline: OnceLock<Instant>,
    /// Of the wait group of short requests, or of that of watches.
    pub wait_group: OnceLock<Token>,
    /// Of the in-flight limiter.
    pub permit: OnceLock<Permit>,
    /// What the audit log is to say; nothing of requests that are not recorded.
    pub audited: OnceLock<Arc<Audited>>,
    /// How long authentication took, which is over before anything is recorded.
    pub authentication_took: OnceLock<Duration>,
    /// Of an API that is deprecated: the release that will not have it, if that is known.
    pub deprecated: OnceLock<String>,
    /// Of a watch that writes are estimated by.
    pub watch: OnceLock<WatchGuard>,
    /// Where stages are noted, if somebody asked for that.
    pub walk: OnceLock<Arc<Walk>>,
    seat: Mutex<Option<Seat>>,
    warnings: Mutex<Vec<String>>,
    aggregated: AtomicBool,
    /// A [`KnownResource`].
    known_resource: AtomicU8,
    /// In microseconds.
    left_out: AtomicU64,
}

impl RequestRecord {
    /// The deadline, if there is one.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline.get().copied()
    }

    /// See [`RequestRecord::audited`].
    pub fn audited(&self) -> Option<&Arc<Audited>> {
        self.audited.get()
    }

    /// See [`RequestRecord::walk`].
    pub fn walk(&self) -> Option<&Arc<Walk>> {
        self.walk.get()
    }

    /// Notes how long a part of the request took.
    pub fn took(&self, part: Latency, took: Duration) {
        if part == Latency::QueueWait {
            self.leave_out(took);
        }
        if let Some(audited) = self.audited() {
            audited.took(part, took);
        }
    }

    /// Latency objectives leave this time out: others took it.
    pub fn leave_out(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.left_out.fetch_add(took, Ordering::Relaxed);
    }

    /// What all of that is.
    pub fn left_out(&self) -> Duration {
        Duration::from_micros(self.left_out.load(Ordering::Relaxed))
    }

    /// The request runs on this seat of priority and fairness.
    pub fn take_seat(&self, seat: Seat) {
        *self.seat.lock() = Some(seat);
    }

    /// The seat, for whoever gives it back before the request is over.
    pub fn leave_seat(&self) -> Option<Seat> {
        self.seat.lock().take()
    }

    /// The response gets a `Warning` header of each of these texts.
    pub fn warn(&self, texts: impl IntoIterator<Item = String>) {
        self.warnings.lock().extend(texts);
    }

    /// All texts so far; they are given out once.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock())
    }

    /// A backend answers.
    pub fn set_aggregated(&self) {
        self.aggregated.store(true, Ordering::Relaxed);
    }

    /// Whether the resource is one that is served: only then does its name become a metric's label.
    pub fn set_known_resource(&self, known: bool) {
        let known = if known { KnownResource::Yes } else { KnownResource::No };
        self.known_resource.store(known as u8, Ordering::Relaxed);
    }

    /// A backend has not said whether it serves the resource.
    pub fn set_resource_known_if_seen(&self) {
        self.known_resource.store(KnownResource::IfSeen as u8, Ordering::Relaxed);
    }

    /// Which server of the chain answers, for metrics: `apiserver` or `aggregator`.
    pub fn component(&self) -> &'static str {
        if self.aggregated.load(Ordering::Relaxed) { "aggregator" } else { "apiserver" }
    }

    /// See [`RequestRecord::set_known_resource`].
    pub fn known_resource(&self) -> KnownResource {
        let known = self.known_resource.load(Ordering::Relaxed);
        [KnownResource::IfSeen, KnownResource::Yes]
            .into_iter()
            .find(|k| *k as u8 == known)
            .unwrap_or_default()
    }
}
