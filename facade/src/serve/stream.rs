//! HTTP/2 streams: the task of each response ends it in time, whether or not the client makes room for more bytes.
//!
//! hyper spawns one task per stream through the executor below. The task of a response that is not read in time is dropped: the
//! stream is reset, and the body is dropped with all that it holds.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use portico_kit::tasks::TaskExecutor;
use tokio::task::futures::TaskLocalFuture;
use tokio::time::Sleep;

use crate::connection::{Exchange, scope};

/// Spawns the tasks of HTTP/2 streams.
#[derive(Clone, Debug)]
pub(super) struct StreamExecutor {
    tasks: TaskExecutor,
    stalled_write: Duration,
}

impl StreamExecutor {
    /// Spawns into these tasks; see [`crate::connection::ConnectionLimits::stalled_write`].
    pub(super) fn new(tasks: TaskExecutor, stalled_write: Duration) -> Self {
        Self { tasks, stalled_write }
    }
}

impl<F> hyper::rt::Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        let exchange = Arc::new(Exchange::for_stream());
        let stream = scope(Arc::clone(&exchange), future);
        self.tasks.execute(StreamTask { stream, exchange, stalled_write: self.stalled_write, sleep: None });
    }
}

pin_project! {
    /// Task of a stream. It ends at the latest when its exchange is to be aborted.
    struct StreamTask<F> {
        #[pin]
        stream: TaskLocalFuture<Arc<Exchange>, F>,
        exchange: Arc<Exchange>,
        stalled_write: Duration,
        sleep: Option<Pin<Box<Sleep>>>,
    }
}

impl<F: Future> Future for StreamTask<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.stream.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        // The time of the abort changes only when the stream is polled, so the timer is adjusted each time.
        let Some(due) = this.exchange.abort_at(*this.stalled_write) else {
            *this.sleep = None;
            return Poll::Pending;
        };
        let due = due.into();
        let sleep = this.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if sleep.deadline() != due {
            sleep.as_mut().reset(due);
        }
        ready!(sleep.as_mut().poll(cx));
        tracing::debug!("resetting a stream: the client does not read the response");
        this.exchange.abort();
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::rt::Executor;
    use portico_kit::tasks::TaskSet;

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_its_client_reads_nothing_although_it_is_not_polled() {
        let tasks = TaskSet::new();
        let executor = StreamExecutor::new(tasks.executor("streams"), Duration::from_millis(50));
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        executor.execute(async move {
            let _held = sender;
            let connection = crate::connection::Connection::plain(([127, 0, 0, 1], 1).into());
            connection.exchange().start_response(None);
            std::future::pending::<()>().await;
        });
        // Resolves when the task, and with it the sender, is dropped.
        assert!(receiver.await.is_err());
        assert!(tasks.shutdown(Duration::from_secs(5)).await.is_empty());
    }
}
