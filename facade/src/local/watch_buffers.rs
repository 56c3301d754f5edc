//! Queues of events for the clients of watches, with a limit for all watches of a facade together.
//!
//! While the queue of a watch is full, further events wait in the control service, for as long as a response may stall; then
//! the watch ends. Beyond the total limit, the watches end whose clients have read no event for longest. Their queued events
//! are dropped: the client resumes from the last revision that it received.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use parking_lot::{Mutex, MutexGuard};
use portico_kit::metrics::{Desc, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Events that wait for one watch.
///
/// Limit (Serving): reading from the store pauses until the client reads.
const MAX_EVENTS: usize = 1024;

/// A client that has read an event within this time counts as reading: its watch ends only beyond twice the limit.
const READING_WINDOW: Duration = Duration::from_secs(1);
/// Minimum time between two searches for slow watches, up to twice the limit.
const SEARCH_PERIOD: Duration = Duration::from_millis(10);

/// Limits of queued bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLimits {
    /// Limit of one watch.
    pub per_watch: usize,
    /// `--max-watch-buffer-bytes`: limit of all watches together.
    pub total: usize,
    /// `--stalled-write-timeout`: maximum time for which an event waits for room.
    pub max_wait: Duration,
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
    /// Notified when no more events are accepted.
    closed: Notify,
    /// Notified when a full queue has room again.
    room: Notify,
}

/// An event as it is sent to the client.
pub(super) struct WatchEvent {
    pub(super) bytes: Bytes,
    /// True if another event of the same revision follows.
    pub(super) more: bool,
}

struct Queue {
    events: VecDeque<WatchEvent>,
    bytes: usize,
    /// True if the producer waits for room.
    is_full: bool,
    /// True if the client has read only a part of the events of a revision.
    is_within_revision: bool,
    /// Time at which the client last read an event, or at which the first event arrived that it can read.
    taken_at: Instant,
    /// True if no more events arrive.
    is_ended: bool,
    reader: Option<Waker>,
}

/// Producer of the events of one watch. Dropping it ends the watch after the queued events.
pub(super) struct Sender {
    buffers: Arc<WatchBuffers>,
    watch: Arc<Watch>,
}

/// Events of one watch, read by its client.
pub(super) struct Events {
    buffers: Arc<WatchBuffers>,
    watch: Arc<Watch>,
    id: u64,
}

impl WatchBuffers {
    /// Registers the metrics.
    #[must_use]
    pub fn new(limits: BufferLimits, registry: &Registry) -> Arc<Self> {
        let bytes = registry.gauge(Desc::gauge(
            "portico_watch_buffer_bytes",
            &[],
            "Bytes of events that are buffered for clients that watch local APIs",
        ));
        let ended = registry.counter(Desc::counter(
            "portico_slow_watches_ended_total",
            &[],
            "Watches of local APIs that were ended because the client did not read fast \
             enough",
        ));
        let (next_id, searched_at, watches) = Default::default();
        Arc::new(Self { limits, next_id, searched_at, watches, bytes, ended })
    }

    /// Starts a watch.
    pub(super) fn begin(self: &Arc<Self>) -> (Sender, Events) {
        let (watch, id) = (Arc::new(Watch::new()), self.next_id.fetch_add(1, Ordering::Relaxed));
        self.watches.lock().insert(id, watch.clone());
        (Sender { buffers: self.clone(), watch: watch.clone() }, Events { buffers: self.clone(), watch, id })
    }

    /// Ends watches while the limit is exceeded. The first event of the sending watch is accepted even if it exceeds the limit.
    fn end_slow_watches(&self, sending: &Arc<Watch>) {
        let limit = signed(self.limits.total);
        let is_far_beyond = self.bytes.get() > limit.saturating_mul(2);
        if self.bytes.get() <= limit || !(is_far_beyond || self.may_search()) {
            return;
        }
        let now = Instant::now();
        for (taken_at, watch) in self.slowest_first(sending) {
            let is_reading = now.saturating_duration_since(taken_at) < READING_WINDOW;
            if self.bytes.get() <= limit || (is_reading && !is_far_beyond) {
                return;
            }
            if self.cut(&watch) {
                self.ended.inc();
                tracing::debug!(limit, "watch ended: its client is the slowest reader of full buffers");
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

    /// Returns the watches with queued events, slowest first.
    fn slowest_first(&self, sending: &Arc<Watch>) -> Vec<(Instant, Arc<Watch>)> {
        let watches = self.watches.lock();
        let slow = watches.values().filter_map(|watch| {
            let (queue, allowance) = (watch.queue.lock(), usize::from(Arc::ptr_eq(watch, sending)));
            (queue.events.len() > allowance).then(|| (queue.taken_at, watch.clone()))
        });
        let mut slow: Vec<_> = slow.collect();
        drop(watches);
        slow.sort_unstable_by_key(|(taken_at, _)| *taken_at);
        slow
    }

    /// Ends a watch and drops its queued events, except the rest of a revision that the client has begun to read: clients resume
    /// after it. Returns false if the watch had ended, or continues because that rest has not arrived yet.
    fn cut(&self, watch: &Watch) -> bool {
        let queue = watch.queue.lock();
        let kept_count = match queue.events.iter().position(|event| !event.more) {
            _ if !queue.is_within_revision => 0,
            Some(last) => last + 1,
            None => return false,
        };
        self.end(watch, queue, kept_count)
    }

    /// Ends a watch and keeps the first `kept_count` of its queued events. Returns false if it had ended.
    fn end(&self, watch: &Watch, mut queue: MutexGuard<'_, Queue>, kept_count: usize) -> bool {
        let dropped = queue.events.split_off(kept_count);
        let bytes = dropped.iter().map(|event| event.bytes.len()).sum();
        queue.bytes -= bytes;
        self.bytes.dec_by(signed(bytes));
        let reader = queue.reader.take();
        let had_ended = std::mem::replace(&mut queue.is_ended, true);
        drop(queue);
        watch.closed.notify_one();
        reader.into_iter().for_each(Waker::wake);
        !had_ended
    }
}

impl Watch {
    fn new() -> Self {
        Self { queue: Mutex::new(Queue::new()), closed: Notify::new(), room: Notify::new() }
    }
}

impl Queue {
    fn new() -> Self {
        Self {
            events: VecDeque::new(),
            bytes: 0,
            is_full: false,
            is_within_revision: false,
            taken_at: Instant::now(),
            is_ended: false,
            reader: None,
        }
    }

    /// Returns true if another event may be added.
    fn has_room(&self, limit: usize) -> bool {
        self.bytes < limit && self.events.len() < MAX_EVENTS
    }

    fn push(&mut self, event: WatchEvent) {
        if self.events.is_empty() {
            self.taken_at = Instant::now();
        }
        self.bytes += event.bytes.len();
        self.events.push_back(event);
    }

    fn pop(&mut self) -> Option<Bytes> {
        let event = self.events.pop_front()?;
        self.bytes -= event.bytes.len();
        self.is_within_revision = event.more;
        self.taken_at = Instant::now();
        Some(event.bytes)
    }
}

impl Sender {
    /// Queues an event as soon as there is room. Returns false if the watch has ended, or ends because there is no room in time.
    pub(super) async fn send(&self, event: WatchEvent) -> bool {
        let size = event.bytes.len();
        let mut waiting_bytes = CountedBytes::new(&self.buffers.bytes, size);
        let reader = loop {
            {
                let mut queue = self.watch.queue.lock();
                if queue.is_ended {
                    return false;
                }
                if queue.has_room(self.buffers.limits.per_watch) {
                    queue.push(event);
                    // From here on it is counted as part of the queue.
                    waiting_bytes.size = 0;
                    break queue.reader.take();
                }
                queue.is_full = true;
            }
            let room = tokio::time::timeout(self.buffers.limits.max_wait, self.watch.room.notified()).await;
            if room.is_err() && self.buffers.cut(&self.watch) {
                self.buffers.ended.inc();
                tracing::debug!("watch ended: its client reads too slowly");
                return false;
            }
        };
        reader.into_iter().for_each(Waker::wake);
        self.buffers.end_slow_watches(&self.watch);
        true
    }

    /// Resolves when the client is disconnected, or the watch was ended to free memory.
    pub(super) async fn wait_for_close(&self) {
        self.watch.closed.notified().await;
    }
}

/// Counts the bytes of an event that waits for room, until it is dropped.
struct CountedBytes<'b> {
    bytes: &'b Gauge,
    size: usize,
}

impl<'b> CountedBytes<'b> {
    fn new(bytes: &'b Gauge, size: usize) -> Self {
        bytes.inc_by(signed(size));
        Self { bytes, size }
    }
}

impl Drop for CountedBytes<'_> {
    fn drop(&mut self) {
        self.bytes.dec_by(signed(self.size));
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut queue = self.watch.queue.lock();
        queue.is_ended = true;
        let reader = queue.reader.take();
        drop(queue);
        reader.into_iter().for_each(Waker::wake);
    }
}

impl Stream for Events {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut queue = self.watch.queue.lock();
        let Some(event) = queue.pop() else {
            if queue.is_ended {
                return Poll::Ready(None);
            }
            queue.reader = Some(context.waker().clone());
            return Poll::Pending;
        };
        self.buffers.bytes.dec_by(signed(event.len()));
        // At half of the limits, so that the producer is not woken for each event.
        let has_room =
            queue.events.len() <= MAX_EVENTS / 2 && queue.bytes <= self.buffers.limits.per_watch / 2;
        if queue.is_full && has_room {
            queue.is_full = false;
            self.watch.room.notify_one();
        }
        Poll::Ready(Some(event))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.buffers.watches.lock().remove(&self.id);
        self.buffers.end(&self.watch, self.watch.queue.lock(), 0);
    }
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
