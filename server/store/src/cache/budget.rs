//! How many bytes of the current state may be held in memory, and how many are.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::metrics::Metrics;
use crate::settings::Settings;

/// A resource that was too large once comes back when it leaves this part of the budget free: one that is about as large as the
/// budget would come and go with every few writes.
const SPARE_PART: i64 = 8;

/// See the module.
pub(crate) struct Budget {
    /// None: everything is held that was ever read or written.
    max: Option<i64>,
    /// How long a resource is unused before another one may take its room, and how long one that found none waits.
    pub(super) rest: Duration,
    held: AtomicI64,
    shown: Gauge,
    pub(super) evictions: Counter,
}

impl Budget {
    /// That of the settings.
    pub(crate) fn new(settings: &Settings, metrics: &Metrics) -> Self {
        let max = settings.cache_max_bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        metrics.cache_max_bytes.set(max.unwrap_or(0));
        Self { max, rest: settings.cache_rest, ..Self::unbounded(metrics) }
    }

    /// Without an end.
    pub(crate) fn unbounded(metrics: &Metrics) -> Self {
        let (shown, evictions) = (metrics.cache_bytes.clone(), metrics.cache_evictions.clone());
        Self { max: None, rest: Duration::ZERO, held: AtomicI64::new(0), shown, evictions }
    }

    /// Whether there is an end to it.
    pub(crate) fn is_bounded(&self) -> bool {
        self.max.is_some()
    }

    /// So many bytes more are held, or fewer.
    pub(super) fn add(&self, bytes: i64) {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.shown.set(held);
    }

    /// Whether more is held than may be.
    pub(super) fn is_over(&self) -> bool {
        self.lacks(0)
    }

    /// Whether there is no room for so many bytes more.
    pub(super) fn lacks(&self, bytes: i64) -> bool {
        self.max.is_some_and(|max| self.held.load(Ordering::Relaxed).saturating_add(bytes) > max)
    }

    /// How many bytes one resource may have. `returns`: it was too large before.
    pub(super) fn most(&self, returns: bool) -> i64 {
        let max = self.max.unwrap_or(i64::MAX);
        if returns { max - max / SPARE_PART } else { max }
    }
}
