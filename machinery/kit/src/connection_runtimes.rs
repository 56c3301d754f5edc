//! Threads that serve connections, each with its own single-threaded runtime.
//!
//! A connection, its requests, and the connections to backends that they open stay on the runtime where they began.
//! No task moves between threads, so no thread wakes another one; with short requests, such wakeups are the main cost
//! of the shared scheduler. Blocking work must run on other threads. Does not depend on the service.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Stack size of a thread. Decoders recurse to the depth of received documents, which they limit; address space is cheap.
const STACK_BYTES: usize = 8 << 20;

thread_local! {
    static RUNTIME: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Returns the index of the runtime of this thread, from 0, or `None` on other threads. Used for state per runtime.
pub fn current_index() -> Option<usize> {
    RUNTIME.get()
}

/// Serving threads. Dropping this stops them and cancels their tasks.
#[derive(Debug)]
pub struct ConnectionRuntimes {
    handles: Vec<Handle>,
    next: AtomicUsize,
    _stop: DropGuard,
}

impl ConnectionRuntimes {
    /// Starts `count` threads (at least one), named `name`.
    ///
    /// # Errors
    /// Returns an error if the system cannot create a thread or an event queue.
    pub fn start(name: &str, count: usize) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let mut handles = Vec::new();
        for at in 0..count.max(1) {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            handles.push(runtime.handle().clone());
            let stop = stop.clone();
            std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(move || {
                RUNTIME.set(Some(at));
                runtime.block_on(stop.cancelled());
            })?;
        }
        Ok(Self { handles, next: AtomicUsize::new(0), _stop: stop.drop_guard() })
    }

    /// Returns the number of threads.
    pub fn count(&self) -> usize {
        self.handles.len()
    }

    /// Returns the next runtime, in rotation.
    pub fn next(&self) -> &Handle {
        &self.handles[self.next.fetch_add(1, Ordering::Relaxed) % self.handles.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn runtimes_rotate_and_tasks_stay_on_their_thread() {
        let runtimes = ConnectionRuntimes::start("runtime", 2).unwrap();
        assert_eq!((runtimes.count(), current_index()), (2, None));
        let mut seen = Vec::new();
        for _ in 0..4 {
            let (tx, rx) = tokio::sync::oneshot::channel();
            runtimes.next().spawn(async move {
                let before = (std::thread::current().id(), current_index());
                tokio::task::yield_now().await;
                let _ = tx.send((before, (std::thread::current().id(), current_index())));
            });
            let (before, after) = rx.await.unwrap();
            assert_eq!(before, after);
            seen.push(after);
        }
        assert_eq!((seen[0], seen[1]), (seen[2], seen[3]));
        assert_ne!(seen[0].0, seen[1].0);
        assert_eq!((seen[0].1, seen[1].1), (Some(0), Some(1)));
    }
}
