//! Limit and current size of the cached state.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::metrics::Metrics;
use crate::settings::Settings;

/// Denominator of the part of the budget that a resource must leave free to return after it was too large. A resource of about
/// the size of the budget would otherwise be loaded and evicted with every few writes.
const SPARE_DIVISOR: i64 = 8;

/// Limit and current size of the cache in bytes.
pub(crate) struct Budget {
    /// Limit in bytes; `None` if unlimited.
    max: Option<i64>,
    /// Time without use before a resource may be evicted for another one, and time before a rejected resource is tried again.
    pub(super) idle_time: Duration,
    bytes: AtomicI64,
    bytes_metric: Gauge,
    pub(super) evictions: Counter,
}

impl Budget {
    /// Creates the budget of the settings.
    pub(crate) fn new(settings: &Settings, metrics: &Metrics) -> Self {
        let max = settings.cache_max_bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        metrics.cache_max_bytes.set(max.unwrap_or(0));
        Self { max, idle_time: settings.cache_idle_time, ..Self::unbounded(metrics) }
    }

    /// Creates an unlimited budget.
    pub(crate) fn unbounded(metrics: &Metrics) -> Self {
        let (bytes_metric, evictions) = (metrics.cache_bytes.clone(), metrics.cache_evictions.clone());
        Self { max: None, idle_time: Duration::ZERO, bytes: AtomicI64::new(0), bytes_metric, evictions }
    }

    /// True if the budget is limited.
    pub(crate) fn is_bounded(&self) -> bool {
        self.max.is_some()
    }

    /// Adds bytes to the current size; negative to subtract.
    pub(super) fn add(&self, bytes: i64) {
        let total = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.bytes_metric.set(total);
    }

    /// True if the current size exceeds the limit.
    pub(super) fn is_over(&self) -> bool {
        self.exceeds(0)
    }

    /// True if this many more bytes do not fit.
    pub(super) fn exceeds(&self, bytes: i64) -> bool {
        self.max.is_some_and(|max| self.bytes.load(Ordering::Relaxed).saturating_add(bytes) > max)
    }

    /// Returns the maximum size of one resource in bytes. `was_rejected`: it was too large before.
    pub(super) fn max_resource_bytes(&self, was_rejected: bool) -> i64 {
        let max = self.max.unwrap_or(i64::MAX);
        if was_rejected { max - max / SPARE_DIVISOR } else { max }
    }
}
