//! Keyed work queue with client-go's semantics, and workers that process it.
//!
//! A key is in the queue at most once, is processed by at most one worker, and if it is added while it
//! is processed, it is processed again afterwards. Memory is bounded by the number of distinct
//! keys; the queue is never full. Does not depend on the meaning of a key.

mod key;
mod metrics;
mod state;
mod unfinished_work;
mod workers;

pub use key::WorkKey;
pub use metrics::QueueMetrics;
pub use workers::{ReconcileOutcome, run_workers};

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::backoff::{BackoffPolicy, KeyLimiter};
use metrics::QueueMetricHandles;
use state::QueueState;
use unfinished_work::ProcessingQueue;

/// Queue of keys. Clones share it.
pub struct WorkQueue<K: WorkKey> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    name: Cow<'static, str>,
    state: Mutex<QueueState<K>>,
    ready: Notify,
    limiter: KeyLimiter<K>,
    metrics: Option<QueueMetricHandles>,
}

impl<K: WorkKey> ProcessingQueue for Inner<K> {
    fn start_times(&self) -> Vec<Instant> {
        self.state.lock().start_times().collect()
    }
}

impl<K: WorkKey> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<K: WorkKey> WorkQueue<K> {
    /// Returns an empty queue without metrics.
    pub fn new(name: impl Into<Cow<'static, str>>, policy: BackoffPolicy) -> Self {
        Self::build(name.into(), policy, None)
    }

    /// Returns an empty queue that reports under `name` in `metrics`.
    pub fn with_metrics(
        name: impl Into<Cow<'static, str>>,
        policy: BackoffPolicy,
        metrics: &QueueMetrics,
    ) -> Self {
        let name = name.into();
        let handles = metrics.handles_for(&name);
        let this = Self::build(name, policy, Some(handles));
        let queue: Arc<dyn ProcessingQueue> = this.inner.clone();
        metrics.register_queue(this.name(), &queue);
        this
    }

    fn build(name: Cow<'static, str>, policy: BackoffPolicy, metrics: Option<QueueMetricHandles>) -> Self {
        let inner = Inner {
            name,
            state: Mutex::new(QueueState::new()),
            ready: Notify::new(),
            limiter: KeyLimiter::new(policy),
            metrics,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the name of the queue in metrics.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Adds a key for immediate processing. A waiting key is not added again; a key that is being processed is processed
    /// again afterwards. Ignored after [`WorkQueue::shutdown`].
    pub fn add(&self, key: K) {
        let mut state = self.inner.state.lock();
        if state.add(key, Instant::now()) {
            self.on_added(&state);
        }
        drop(state);
        self.inner.ready.notify_one();
    }

    /// Adds a key after `delay`. If a key is added with several delays, the earliest time applies.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        self.inner.state.lock().add_at(key, Instant::now() + delay);
        self.inner.ready.notify_one();
    }

    /// Adds a key after a delay that depends on the number of its failures.
    pub fn add_rate_limited(&self, key: K) {
        let wait = self.inner.limiter.when(&key);
        if let Some(metrics) = &self.inner.metrics {
            metrics.retries.inc();
        }
        self.add_after(key, wait);
    }

    /// Resets the failure count of a key that succeeded or no longer exists.
    pub fn forget(&self, key: &K) {
        self.inner.limiter.forget(key);
    }

    /// Returns the number of times that the key was added with rate limiting since it was forgotten.
    pub fn retries(&self, key: &K) -> u32 {
        self.inner.limiter.failures(key)
    }

    /// Returns the number of keys that wait for processing, without delayed keys and keys being processed.
    pub fn len(&self) -> usize {
        self.inner.state.lock().len()
    }

    /// True if no key waits for processing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if no key waits, is delayed, or is being processed.
    pub fn is_idle(&self) -> bool {
        self.inner.state.lock().is_idle()
    }

    /// Returns the next key, or `None` once the queue is shut down and empty. The key counts as being processed until the
    /// returned guard is dropped. Cancel safe.
    pub async fn next(&self) -> Option<WorkItem<K>> {
        loop {
            let notified = self.inner.ready.notified();
            let deadline = match self.try_next() {
                NextItem::Work(work) => return Some(work),
                NextItem::Closed => return None,
                NextItem::Wait(deadline) => deadline,
            };
            match deadline {
                Some(deadline) => {
                    let _ = tokio::time::timeout_at(deadline, notified).await;
                }
                None => notified.await,
            }
        }
    }

    /// Refuses further keys and drops delayed keys. Waiting keys are still returned by [`WorkQueue::next`].
    pub fn shutdown(&self) {
        self.inner.state.lock().close();
        self.inner.ready.notify_waiters();
        self.inner.ready.notify_one();
    }

    fn try_next(&self) -> NextItem<K> {
        let now = Instant::now();
        let mut state = self.inner.state.lock();
        let promoted = state.promote(now);
        if let (Some(metrics), true) = (&self.inner.metrics, promoted > 0) {
            metrics.adds.inc_by(promoted as u64);
        }
        let Some((key, since)) = state.pop(now) else {
            return if state.is_closed() { NextItem::Closed } else { NextItem::Wait(state.deadline()) };
        };
        if let Some(metrics) = &self.inner.metrics {
            metrics.depth.set(state.len() as i64);
            metrics.queue_duration.observe((now - since).as_secs_f64());
        }
        // `Notify` stores at most one permit, so each caller wakes the next one while keys are left.
        if state.len() > 0 || state.deadline().is_some() || state.is_closed() {
            self.inner.ready.notify_one();
        }
        NextItem::Work(WorkItem { key, queue: self.clone(), since: now })
    }

    fn on_added(&self, state: &QueueState<K>) {
        if let Some(metrics) = &self.inner.metrics {
            metrics.adds.inc();
            metrics.depth.set(state.len() as i64);
        }
    }

    fn done(&self, key: &K, since: Instant) {
        let again = self.inner.state.lock().done(key, Instant::now());
        if let Some(metrics) = &self.inner.metrics {
            metrics.work_duration.observe(since.elapsed().as_secs_f64());
        }
        if again {
            self.inner.ready.notify_one();
        }
    }
}

enum NextItem<K: WorkKey> {
    Work(WorkItem<K>),
    Wait(Option<Instant>),
    Closed,
}

/// Key that is being processed. Dropping it is client-go's `Done`.
pub struct WorkItem<K: WorkKey> {
    key: K,
    queue: WorkQueue<K>,
    since: Instant,
}

impl<K: WorkKey> Deref for WorkItem<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: WorkKey> Drop for WorkItem<K> {
    fn drop(&mut self) {
        self.queue.done(&self.key, self.since);
    }
}

#[cfg(test)]
mod tests;
