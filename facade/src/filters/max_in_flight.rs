//! MaxInFlight: two limits, for reads and for everything else; long-running requests pass (1.8).
//!
//! Stands where priority and fairness will stand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::header::{HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use portico_machinery::user::MASTERS;

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;
use crate::metrics::{Class, RequestMetrics, Terminated};
use crate::respond;

/// The limiter. Clones share it.
#[derive(Clone)]
pub struct MaxInFlight {
    inner: Arc<Inner>,
}

struct Inner {
    /// 0 is unlimited.
    limits: [usize; 2],
    now: [AtomicUsize; 2],
    metrics: Arc<RequestMetrics>,
}

/// A place in flight, given back when dropped.
pub struct Permit {
    inner: Arc<Inner>,
    class: Class,
}

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Permit({:?})", self.class)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.inner.now[self.class as usize].fetch_sub(1, Ordering::AcqRel);
    }
}

impl MaxInFlight {
    /// `--max-requests-inflight` and `--max-mutating-requests-inflight`; 0 is unlimited.
    #[must_use]
    pub fn new(reads: usize, mutations: usize, metrics: Arc<RequestMetrics>) -> Self {
        let now = [AtomicUsize::new(0), AtomicUsize::new(0)];
        Self { inner: Arc::new(Inner { limits: [reads, mutations], now, metrics }) }
    }

    /// How many reads and others are in flight.
    #[must_use]
    pub fn now(&self) -> [usize; 2] {
        [0, 1].map(|at: usize| self.inner.now[at].load(Ordering::Relaxed))
    }

    fn admit(&self, class: Class, always: bool) -> Option<Permit> {
        let limit = self.inner.limits[class as usize];
        let now = self.inner.now[class as usize].fetch_add(1, Ordering::AcqRel) + 1;
        // Dropping the permit takes the count back.
        let permit = Permit { inner: self.inner.clone(), class };
        if limit != 0 && now > limit && !always {
            return None;
        }
        self.inner.metrics.in_flight(class, now);
        Some(permit)
    }
}

impl Filter for MaxInFlight {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        if x.long_running {
            return next.handle(x).await;
        }
        let class = if x.info.is_read_only() { Class::ReadOnly } else { Class::Mutating };
        let master = x.user.as_ref().is_some_and(|u| u.in_group(MASTERS));
        match self.admit(class, master) {
            Some(permit) => x.guards.permit = Some(permit),
            None => {
                let message = "Too many requests, please try again later.";
                let mut response = respond::text(StatusCode::TOO_MANY_REQUESTS, message);
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
                response.extensions_mut().insert(Terminated);
                return response;
            }
        }
        next.handle(x).await
    }
}
