//! The pump delivers the events of a watch from the control service to a client.
//!
//! Events wait in a queue with a bounded number of bytes; while it is full, no more are read from the control service. If too
//! many bytes wait for all clients together, or the server drains, the HTTP watch ends as at its timeout, but not between two
//! events of a revision; the client resumes from the last revision that it received.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http_body::Frame;
use http_body_util::StreamBody;
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;

use super::watch_buffers::{Sender, WatchBuffers, WatchEvent};
use crate::body::{Body, BoxError};

/// Starts the pump. The events end with the watch, and the watch ends when the events are dropped.
pub(super) fn start<S>(
    tasks: &TaskSet,
    mut frames: S,
    shutdown: Option<Signal>,
    buffers: &Arc<WatchBuffers>,
) -> impl Stream<Item = Bytes> + Send + Unpin + use<S>
where
    S: Stream<Item = Result<WatchEvent, String>> + Send + Unpin + 'static,
{
    let (sender, events) = buffers.begin();
    tasks.spawn_until_cancelled("watch-pump", async move {
        // Borrowed where it was captured: moved, it would be stored a second time in the task of each watch.
        let frames = &mut frames;
        let draining = async {
            match &shutdown {
                Some(signal) => signal.signaled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = pump(frames, &sender, draining) => {}
            () = sender.wait_for_close() => {}
        }
    });
    events
}

/// Turns the events into a body.
pub(super) fn body(events: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    Body::streamed(StreamBody::new(events.map(|bytes| Ok::<_, BoxError>(Frame::data(bytes)))))
}

async fn pump<S>(frames: &mut S, sender: &Sender, draining: impl Future<Output = ()>)
where
    S: Stream<Item = Result<WatchEvent, String>> + Unpin,
{
    let mut draining = std::pin::pin!(draining);
    let mut is_within = false;
    loop {
        let frame = tokio::select! {
            biased;
            () = &mut draining, if !is_within => return,
            frame = frames.next() => frame,
        };
        let event = match frame {
            Some(Ok(event)) => event,
            Some(Err(error)) => return tracing::debug!(error, "watch failed"),
            None => return,
        };
        let more = event.more;
        tokio::select! {
            is_taken = sender.send(event) => if !is_taken { return },
            () = &mut draining, if !is_within => return,
        }
        is_within = more;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use futures::stream;
    use http_body_util::BodyExt;
    use portico_kit::metrics::{Format, Registry};

    use super::super::watch_buffers::BufferLimits;

    fn buffers(per_watch: usize, total: usize) -> (Arc<WatchBuffers>, Registry) {
        let registry = Registry::new();
        (
            WatchBuffers::new(
                BufferLimits { per_watch, total, max_wait: Duration::from_secs(60) },
                &registry,
            ),
            registry,
        )
    }

    /// Creates an event that is the only or the last one of its revision.
    fn event(bytes: &'static [u8]) -> WatchEvent {
        WatchEvent { bytes: Bytes::from_static(bytes), more: false }
    }

    #[tokio::test]
    async fn reading_stops_at_the_queue_limit_and_all_events_arrive() {
        let (tasks, (buffers, registry)) = (TaskSet::new(), buffers(100, 1_000));
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = taken.clone();
        let source = stream::iter(0..5_000).map(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(event(b"0123456789"))
        });
        let events = start(&tasks, source, None, &buffers);
        while buffered_bytes(&registry) < 100 {
            tokio::task::yield_now().await;
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(taken.load(Ordering::Relaxed), 11, "ten wait, and the next one is held");
        assert_eq!(body(events).collect().await.unwrap().to_bytes().len(), 50_000);
        assert!(tasks.shutdown(std::time::Duration::from_secs(5)).await.is_empty());
    }

    fn part(more: bool) -> WatchEvent {
        WatchEvent { more, ..event(b"0123456789") }
    }

    #[tokio::test]
    async fn a_watch_does_not_end_between_two_events_of_a_revision() {
        let (tasks, (buffers, registry)) = (TaskSet::new(), buffers(100, 30));
        let (sender, mut cut) = buffers.begin();
        for more in [true, true, false, false] {
            assert!(sender.send(part(more)).await);
        }
        assert!(cut.next().await.is_some());
        assert!(buffers.begin().0.send(event(&[b'x'; 65])).await);
        assert_eq!(cut.count().await, 2, "the rest of the revision is kept: {}", buffered_bytes(&registry));

        let (feed, source) = futures::channel::mpsc::unbounded();
        let signal = Signal::new("drain");
        let mut drained = start(&tasks, source, Some(signal.clone()), &buffers);
        feed.unbounded_send(Ok(part(true))).unwrap();
        assert!(drained.next().await.is_some());
        signal.signal();
        for more in [true, false, false] {
            feed.unbounded_send(Ok(part(more))).unwrap();
        }
        assert_eq!(drained.count().await, 2);
    }

    #[tokio::test]
    async fn a_drain_ends_the_watch_and_so_does_a_disconnected_client() {
        let (tasks, (buffers, _)) = (TaskSet::new(), buffers(100, 1_000));
        let signal = Signal::new("drain");
        let body = body(start(&tasks, stream::pending(), Some(signal.clone()), &buffers));
        signal.signal();
        assert!(body.collect().await.unwrap().to_bytes().is_empty());
        drop(start(&tasks, stream::pending(), None, &buffers));
        while !tasks.running().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    fn buffered_bytes(registry: &Registry) -> usize {
        let text = registry.encode(Format::Text);
        let line = text.lines().find(|line| line.starts_with("portico_watch_buffer_bytes ")).unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn beyond_the_total_limit_the_slowest_watches_end() {
        let (buffers, registry) = buffers(1_000, 250);
        let event = || event(&[b'x'; 20]);
        let (reading, mut events) = buffers.begin();
        let mut stalled = Vec::new();
        for _ in 0..10 {
            let watch = buffers.begin();
            assert!(watch.0.send(event()).await);
            stalled.push(watch);
            tokio::time::advance(Duration::from_secs(2)).await;
        }
        // The reading client has a backlog whenever an event is sent, and each of the others has a single event.
        for _ in 0..20 {
            for _ in 0..4 {
                tokio::time::advance(Duration::from_millis(10)).await;
                assert!(reading.send(event()).await);
            }
            assert!(buffered_bytes(&registry) <= 250, "{}", buffered_bytes(&registry));
            for _ in 0..4 {
                assert_eq!(events.next().await, Some(event().bytes));
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!(registry.encode(Format::Text).contains("portico_slow_watches_ended_total 2\n"));
        let mut ended = Vec::new();
        for (sender, _) in &stalled {
            ended.push(!sender.send(event()).await);
        }
        assert_eq!(ended, [[true; 2].as_slice(), &[false; 8]].concat());
        // A client whose watch was ended receives no event after the dropped ones.
        let (sender, mut first) = stalled.into_iter().next().unwrap();
        drop(sender);
        assert_eq!(first.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_of_a_stalled_client_ends_and_its_waiting_event_counts() {
        let (buffers, registry) = buffers(100, 1_000);
        let (sender, mut events) = buffers.begin();
        for _ in 0..10 {
            assert!(sender.send(event(b"0123456789")).await);
        }
        let mut large = std::pin::pin!(sender.send(event(&[b'x'; 500])));
        assert!(futures::poll!(large.as_mut()).is_pending());
        assert_eq!(buffered_bytes(&registry), 600);
        assert!(!large.await, "nobody reads");
        assert_eq!((events.next().await, buffered_bytes(&registry)), (None, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn watches_of_reading_clients_end_only_beyond_twice_the_limit() {
        let (buffers, registry) = buffers(1_000, 50);
        let event = || event(&[b'x'; 20]);
        let watches: Vec<_> = (0..10).map(|_| buffers.begin()).collect();
        for (sender, _) in &watches[..5] {
            assert!(sender.send(event()).await);
        }
        assert_eq!(buffered_bytes(&registry), 100);
        for (sender, _) in &watches[5..] {
            assert!(sender.send(event()).await);
            assert!(buffered_bytes(&registry) <= 100, "{}", buffered_bytes(&registry));
        }
        let (sender, mut events) = watches.into_iter().next_back().unwrap();
        drop(sender);
        assert_eq!(events.next().await, Some(event().bytes));
    }

    #[tokio::test]
    async fn events_of_a_disconnected_client_no_longer_count() {
        let (buffers, registry) = buffers(100, 250);
        let (sender, events) = buffers.begin();
        for _ in 0..4 {
            assert!(sender.send(event(b"0123456789")).await);
        }
        drop(events);
        assert!(!sender.send(event(b"0123456789")).await);
        assert!(registry.encode(Format::Text).contains("portico_watch_buffer_bytes 0\n"));
    }
}
