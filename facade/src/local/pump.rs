//! Between a watch of the control service and a client: never stops reading the one because the other is slow.
//!
//! Events wait in a queue of bounded bytes. When it is full, or the server drains, the HTTP watch ends, as if its
//! timeout had come; the client resumes from the last revision that it saw.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http_body::Frame;
use http_body_util::StreamBody;
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::body::{Body, BoxError};

/// Messages that wait, besides the bound in bytes.
const MESSAGES: usize = 1024;

/// Starts the pump; the events end when the watch does, in whatever way, and the watch when they are dropped.
pub(super) fn start<S>(
    tasks: &TaskSet,
    mut frames: S,
    shutdown: Option<Signal>,
    limit: usize,
) -> impl Stream<Item = Bytes> + Send + Unpin + use<S>
where
    S: Stream<Item = Result<Bytes, String>> + Send + Unpin + 'static,
{
    let (queue, events) = mpsc::channel::<Bytes>(MESSAGES);
    let waiting = Arc::new(AtomicUsize::new(0));
    let taken = waiting.clone();
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
            () = pump(frames, &queue, &waiting, limit) => {}
            () = draining => {}
            () = queue.closed() => {}
        }
    });
    ReceiverStream::new(events).inspect(move |bytes| {
        taken.fetch_sub(bytes.len(), Ordering::AcqRel);
    })
}

/// The events as a body.
pub(super) fn body(events: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    Body::streamed(StreamBody::new(events.map(|bytes| Ok::<_, BoxError>(Frame::data(bytes)))))
}

async fn pump<S>(frames: &mut S, queue: &mpsc::Sender<Bytes>, waiting: &AtomicUsize, limit: usize)
where
    S: Stream<Item = Result<Bytes, String>> + Unpin,
{
    while let Some(frame) = frames.next().await {
        let bytes = match frame {
            Ok(bytes) => bytes,
            Err(error) => return tracing::debug!(error, "a watch ended"),
        };
        let size = bytes.len();
        // A single event may be larger than the bound; it is let through when nothing else waits.
        if waiting.fetch_add(size, Ordering::AcqRel) > 0 && waiting.load(Ordering::Acquire) > limit {
            return tracing::debug!(limit, "a watch ended: its client does not read");
        }
        if queue.try_send(bytes).is_err() {
            return tracing::debug!("a watch ended: its client does not read or is gone");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn a_client_that_does_not_read_loses_its_watch_and_keeps_what_waited() {
        let tasks = TaskSet::new();
        let endless = stream::repeat_with(|| Ok(Bytes::from_static(b"0123456789"))).chain(stream::pending());
        let body = body(start(&tasks, endless, None, 100));
        // Resolves although the source never ends: the queue was full.
        let read = body.collect().await.unwrap().to_bytes();
        assert!(!read.is_empty() && read.len() < 1000, "{}", read.len());
        assert!(tasks.shutdown(std::time::Duration::from_secs(5)).await.is_empty());
    }

    #[tokio::test]
    async fn a_drain_ends_the_watch_and_so_does_a_client_that_leaves() {
        let tasks = TaskSet::new();
        let signal = Signal::new("drain");
        let body = body(start(&tasks, stream::pending(), Some(signal.clone()), 100));
        signal.signal();
        assert!(body.collect().await.unwrap().to_bytes().is_empty());
        drop(start(&tasks, stream::pending(), None, 100));
        while !tasks.running().is_empty() {
            tokio::task::yield_now().await;
        }
    }
}
