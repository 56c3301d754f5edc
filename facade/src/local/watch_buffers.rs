//! Events that wait for clients that watch, with a bound for the sum of all watches of a facade.
//!
//! A client that does not read holds as much as one watch may hold until its connection is aborted. Beyond the bound the watches whose
//! clients have taken no event for longest end, and the events that wait for them are dropped: their clients resume from the last
//! revision that they saw.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use parking_lot::Mutex;
use portico_kit::metrics::Registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Maximum number of events that wait for one client.
const EVENTS: usize = 1024;

/// A client that has taken an event within this time reads: its watch ends only beyond twice the bound.
const READS_WITHIN: Duration = Duration::from_secs(1);
/// Minimum time between two searches for slow watches, up to twice the bound.
const SEARCH_PERIOD: Duration = Duration::from_millis(10);

/// Bounds for the bytes that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLimits {
    /// Limit of one watch.
    pub each: usize,
    /// `--max-watch-buffer-bytes`: for all watches together.
    pub total: usize,
}

/// Queues of all watches.
pub struct WatchBuffers {
    limits: BufferLimits,
    next_id: AtomicU64,
    searched_at: Mutex<Option<Instant>>,
    watches: Mutex<HashMap<u64, Arc<Watch>>>,
    bytes: Gauge,
    ended: Counter,
}

struct Watch {
    queue: Mutex<Queue>,
    /// Notified when no more events are taken.
    closed: Notify,
}

struct Queue {
    events: VecDeque<Bytes>,
    bytes: usize,
    /// Time at which the client took an event, or at which the first one arrived that it can take.
    taken_at: Instant,
    /// No more events arrive.
    ended: bool,
    reader: Option<Waker>,
}

/// Producer of the events of one watch. When it is dropped the watch ends with the events that wait.
pub(super) struct Sender {
    buffers: Arc<WatchBuffers>,
    watch: Arc<Watch>,
}

/// Events of one watch, as its client takes them.
pub(super) struct Events {
    buffers: Arc<WatchBuffers>,
    watch: Arc<Watch>,
    id: u64,
}

impl WatchBuffers {
    /// Registers their metrics.
    #[must_use]
    pub fn new(limits: BufferLimits, registry: &Registry) -> Arc<Self> {
        let help = "Bytes of events that wait for clients that watch local APIs";
        let bytes = registry.gauge("portico_watch_buffer_bytes", help);
        let help = "Watches of local APIs that ended because their clients did not read";
        let ended = registry.counter("portico_slow_watches_ended_total", help);
        let (next_id, searched_at, watches) = Default::default();
        Arc::new(Self { limits, next_id, searched_at, watches, bytes, ended })
    }

    /// Begins a watch.
    pub(super) fn begin(self: &Arc<Self>) -> (Sender, Events) {
        let (watch, id) = (Arc::new(Watch::new()), self.next_id.fetch_add(1, Ordering::Relaxed));
        self.watches.lock().insert(id, watch.clone());
        (Sender { buffers: self.clone(), watch: watch.clone() }, Events { buffers: self.clone(), watch, id })
    }

    /// Ends watches while too much waits. A first event of the sending watch passes even if it is larger than the bound.
    fn shed(&self, sending: &Arc<Watch>) {
        let limit = signed(self.limits.total);
        let is_far_beyond = self.bytes.get() > limit.saturating_mul(2);
        if self.bytes.get() <= limit || !(is_far_beyond || self.may_search()) {
            return;
        }
        let now = Instant::now();
        for (taken_at, watch) in self.slowest_first(sending) {
            let reads = now.saturating_duration_since(taken_at) < READS_WITHIN;
            if self.bytes.get() <= limit || (reads && !is_far_beyond) {
                return;
            }
            if self.close(&watch) {
                self.ended.inc();
                tracing::debug!(limit, "a watch ended: its client reads slower than all others");
            }
        }
    }

    fn may_search(&self) -> bool {
        let (now, mut searched_at) = (Instant::now(), self.searched_at.lock());
        let may = searched_at.is_none_or(|at| now.saturating_duration_since(at) >= SEARCH_PERIOD);
        if may {
            *searched_at = Some(now);
        }
        may
    }

    /// Returns the watches for which events wait, in the order in which they may end.
    fn slowest_first(&self, sending: &Arc<Watch>) -> Vec<(Instant, Arc<Watch>)> {
        let watches = self.watches.lock();
        let slow = watches.values().filter_map(|watch| {
            let (queue, spared) = (watch.queue.lock(), usize::from(Arc::ptr_eq(watch, sending)));
            (queue.events.len() > spared).then(|| (queue.taken_at, watch.clone()))
        });
        let mut slow: Vec<_> = slow.collect();
        drop(watches);
        slow.sort_unstable_by_key(|(taken_at, _)| *taken_at);
        slow
    }

    /// Ends a watch and drops the events that wait for it. Returns false if it had ended.
    fn close(&self, watch: &Watch) -> bool {
        let mut queue = watch.queue.lock();
        self.bytes.dec_by(signed(queue.bytes));
        let reader = queue.reader.take();
        let had_ended = queue.ended;
        *queue = Queue { ended: true, ..Queue::new() };
        drop(queue);
        watch.closed.notify_one();
        reader.into_iter().for_each(Waker::wake);
        !had_ended
    }
}

impl Watch {
    fn new() -> Self {
        Self { queue: Mutex::new(Queue::new()), closed: Notify::new() }
    }
}

impl Queue {
    fn new() -> Self {
        Self { events: VecDeque::new(), bytes: 0, taken_at: Instant::now(), ended: false, reader: None }
    }
}

impl Sender {
    /// Puts an event into the queue; returns false if the watch has to end.
    pub(super) fn send(&self, event: Bytes) -> bool {
        let (size, limits) = (event.len(), self.buffers.limits);
        let mut queue = self.watch.queue.lock();
        if queue.ended {
            return false;
        }
        // A single event may be larger than the bound; it is let through when no other one waits.
        let is_first = queue.events.is_empty();
        if !is_first && (queue.bytes + size > limits.each || queue.events.len() >= EVENTS) {
            self.buffers.ended.inc();
            tracing::debug!(limit = limits.each, "a watch ended: its client does not read");
            return false;
        }
        if is_first {
            queue.taken_at = Instant::now();
        }
        queue.events.push_back(event);
        queue.bytes += size;
        self.buffers.bytes.inc_by(signed(size));
        let reader = queue.reader.take();
        drop(queue);
        reader.into_iter().for_each(Waker::wake);
        self.buffers.shed(&self.watch);
        true
    }

    /// Resolves when the client is gone, or the watch was ended for others.
    pub(super) async fn closed(&self) {
        self.watch.closed.notified().await;
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut queue = self.watch.queue.lock();
        queue.ended = true;
        let reader = queue.reader.take();
        drop(queue);
        reader.into_iter().for_each(Waker::wake);
    }
}

impl Stream for Events {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut queue = self.watch.queue.lock();
        let Some(event) = queue.events.pop_front() else {
            if queue.ended {
                return Poll::Ready(None);
            }
            queue.reader = Some(context.waker().clone());
            return Poll::Pending;
        };
        queue.bytes -= event.len();
        queue.taken_at = Instant::now();
        self.buffers.bytes.dec_by(signed(event.len()));
        Poll::Ready(Some(event))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.buffers.watches.lock().remove(&self.id);
        self.buffers.close(&self.watch);
    }
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
