//! Between a watch of the control service and a client: never stops reading the one because the other is slow.
//!
//! Events wait in a queue of bounded bytes. When it is full, too much waits for all clients together, or the server drains, the HTTP
//! watch ends, as if its timeout had come; the client resumes from the last revision that it saw.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http_body::Frame;
use http_body_util::StreamBody;
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;

use super::watch_buffers::{Sender, WatchBuffers};
use crate::body::{Body, BoxError};

/// Starts the pump; the events end when the watch does, in whatever way, and the watch when they are dropped.
pub(super) fn start<S>(
    tasks: &TaskSet,
    mut frames: S,
    shutdown: Option<Signal>,
    buffers: &Arc<WatchBuffers>,
) -> impl Stream<Item = Bytes> + Send + Unpin + use<S>
where
    S: Stream<Item = Result<Bytes, String>> + Send + Unpin + 'static,
{
    let (sender, events) = buffers.begin();
    tasks.spawn_until_cancelled("watch-pump", async move {
        // Used where it was captured: moved on, it would lie twice in each watch's task.
        let frames = &mut frames;
        let draining = async {
            match &shutdown {
                Some(signal) => signal.signaled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = pump(frames, &sender) => {}
            () = draining => {}
            () = sender.closed() => {}
        }
    });
    events
}

/// The events as a body.
pub(super) fn body(events: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    Body::streamed(StreamBody::new(events.map(|bytes| Ok::<_, BoxError>(Frame::data(bytes)))))
}

async fn pump<S>(frames: &mut S, sender: &Sender)
where
    S: Stream<Item = Result<Bytes, String>> + Unpin,
{
    while let Some(frame) = frames.next().await {
        let is_taken = match frame {
            Ok(bytes) => sender.send(bytes),
            Err(error) => return tracing::debug!(error, "a watch ended"),
        };
        if !is_taken {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use futures::stream;
    use http_body_util::BodyExt;
    use portico_kit::metrics::{Format, Registry};

    use super::super::watch_buffers::BufferLimits;

    fn buffers(each: usize, total: usize) -> (Arc<WatchBuffers>, Registry) {
        let registry = Registry::new();
        (WatchBuffers::new(BufferLimits { each, total }, &registry), registry)
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_loses_its_watch_and_keeps_what_waited() {
        let tasks = TaskSet::new();
        let endless = stream::repeat_with(|| Ok(Bytes::from_static(b"0123456789"))).chain(stream::pending());
        let body = body(start(&tasks, endless, None, &buffers(100, 1_000).0));
        // Resolves although the source never ends: the queue was full.
        let read = body.collect().await.unwrap().to_bytes();
        assert!(!read.is_empty() && read.len() < 1000, "{}", read.len());
        assert!(tasks.shutdown(std::time::Duration::from_secs(5)).await.is_empty());
    }

    #[tokio::test]
    async fn a_drain_ends_the_watch_and_so_does_a_client_that_leaves() {
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

    fn waiting(registry: &Registry) -> usize {
        let text = registry.encode(Format::Text);
        let line = text.lines().find(|line| line.starts_with("portico_watch_buffer_bytes ")).unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn beyond_the_sum_of_all_watches_those_end_that_took_nothing_for_longest() {
        let (buffers, registry) = buffers(1_000, 250);
        let event = Bytes::from_static(&[b'x'; 20]);
        let (reading, mut events) = buffers.begin();
        let mut stalled = Vec::new();
        for _ in 0..10 {
            let watch = buffers.begin();
            assert!(watch.0.send(event.clone()));
            stalled.push(watch);
            tokio::time::advance(Duration::from_secs(2)).await;
        }
        // The reader has a backlog whenever an event is sent, and each of the others has a single event.
        for _ in 0..20 {
            for _ in 0..4 {
                tokio::time::advance(Duration::from_millis(10)).await;
                assert!(reading.send(event.clone()));
            }
            assert!(waiting(&registry) <= 250, "{}", waiting(&registry));
            for _ in 0..4 {
                assert_eq!(events.next().await, Some(event.clone()));
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!(registry.encode(Format::Text).contains("portico_slow_watches_ended_total 2\n"));
        let ended: Vec<bool> = stalled.iter().map(|(sender, _)| !sender.send(event.clone())).collect();
        assert_eq!(ended, [[true; 2].as_slice(), &[false; 8]].concat());
        // A client whose watch was ended gets no event behind those that were dropped.
        let (sender, mut first) = stalled.into_iter().next().unwrap();
        drop(sender);
        assert_eq!(first.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn watches_of_clients_that_read_end_beyond_twice_the_sum_alone() {
        let (buffers, registry) = buffers(1_000, 50);
        let event = Bytes::from_static(&[b'x'; 20]);
        let watches: Vec<_> = (0..10).map(|_| buffers.begin()).collect();
        for (sender, _) in &watches[..5] {
            assert!(sender.send(event.clone()));
        }
        assert_eq!(waiting(&registry), 100);
        for (sender, _) in &watches[5..] {
            assert!(sender.send(event.clone()));
            assert!(waiting(&registry) <= 100, "{}", waiting(&registry));
        }
        let (sender, mut events) = watches.into_iter().next_back().unwrap();
        drop(sender);
        assert_eq!(events.next().await, Some(event));
    }

    #[tokio::test]
    async fn what_waits_for_a_client_that_leaves_is_not_counted_any_more() {
        let (buffers, registry) = buffers(100, 250);
        let (sender, events) = buffers.begin();
        assert!((0..4).all(|_| sender.send(Bytes::from_static(b"0123456789"))));
        drop(events);
        assert!(!sender.send(Bytes::from_static(b"0123456789")));
        assert!(registry.encode(Format::Text).contains("portico_watch_buffer_bytes 0\n"));
    }
}
