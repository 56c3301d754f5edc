//! Threads for long computations, separate from the threads that serve connections.
//!
//! A request with a large body or schema occupies a processor for tens of milliseconds, which delays all connections on
//! the same thread. The whole future of such a request runs here instead; the operating system schedules these
//! threads and the serving threads. Does not depend on the work.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::tasks::{TaskName, TaskSet};

/// Large requests that run concurrently on each thread for long work.
///
/// Work that waits for webhooks or the store leaves the thread to other work.
///
/// Limit (Requests): further ones wait in order.
const MAX_RUNNING_PER_THREAD: usize = 4;
/// Stack size of a thread, equal to that of serving threads: decoders recurse to the depth of documents.
const STACK_BYTES: usize = 8 << 20;

tokio::task_local! {
    /// Token that is cancelled when the caller of the work is dropped.
    static CALLER: CancellationToken;
}

/// True if the caller of this work was dropped. Computations without await points check it; on other threads it is `false`.
#[must_use]
pub fn is_abandoned() -> bool {
    CALLER.try_with(CancellationToken::is_cancelled).unwrap_or(false)
}

/// Threads for long work. Dropping this stops them and cancels their tasks.
#[derive(Debug)]
pub struct Offload {
    /// Runtime of the threads; `None` only while this is dropped.
    runtime: Option<Runtime>,
    permits: Arc<Semaphore>,
    tasks: TaskSet,
}

impl Offload {
    /// Starts half as many threads as there are processors, at least one.
    ///
    /// # Errors
    /// Returns an error if the system cannot create a thread or an event queue.
    pub fn start(name: &str, tasks: &TaskSet) -> io::Result<Self> {
        let threads = available_parallelism().map_or(1, |count| count.get() / 2).max(1);
        Self::with_threads(name, threads, tasks)
    }

    /// Starts this number of threads.
    ///
    /// # Errors
    /// Returns an error if the system cannot create a thread or an event queue.
    pub fn with_threads(name: &str, threads: usize, tasks: &TaskSet) -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).thread_name(name).thread_stack_size(STACK_BYTES).enable_all();
        let permits = Arc::new(Semaphore::new(threads * MAX_RUNNING_PER_THREAD));
        Ok(Self { runtime: Some(builder.build()?), permits, tasks: tasks.clone() })
    }

    /// Runs work on these threads and waits for it. The work is dropped together with its caller (see also [`is_abandoned`]).
    /// Returns `None` if the work panicked or the threads are shutting down. The work holds a permit until it ends, also while it
    /// waits, which limits the number of works that hold much memory.
    pub async fn run<T: Send + 'static>(
        &self,
        name: impl Into<TaskName>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        let work = async move {
            let _permit = permit;
            work.await
        };
        self.run_light(name, work).await
    }

    /// Runs work as [`Offload::run`] does, but without a permit, for work that holds little memory: however many such works wait
    /// for a webhook or for the store, other work can begin.
    pub async fn run_light<T: Send + 'static>(
        &self,
        name: impl Into<TaskName>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let runtime = self.runtime.as_ref()?;
        let (done, outcome) = oneshot::channel();
        let caller = CancellationToken::new();
        let _left = caller.clone().drop_guard();
        let work = CALLER.scope(caller.clone(), work);
        self.tasks.spawn_on(runtime.handle(), name, async move {
            if let Some(outcome) = caller.run_until_cancelled(work).await {
                // The caller may have been dropped.
                let _ = done.send(outcome);
            }
        });
        outcome.await.ok()
    }
}

impl Drop for Offload {
    fn drop(&mut self) {
        // Waits for no thread, because blocking is not allowed in every context in which this is dropped.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn offload(threads: usize) -> Arc<Offload> {
        Arc::new(Offload::with_threads("long", threads, &TaskSet::new()).unwrap())
    }

    #[tokio::test]
    async fn work_runs_on_another_thread() {
        let offload = offload(1);
        let thread_name = offload.run("where", async { thread::current().name().map(str::to_owned) }).await;
        assert_eq!(thread_name, Some(Some("long".to_owned())));
        assert_eq!(offload.run("panics", async move { assert!(thread_name.is_none()) }).await, None);
        assert_eq!(offload.run("goes on", async { 7 }).await, Some(7));
    }

    /// The calling thread serves other tasks while another thread computes. This test has one thread and would hang otherwise.
    #[tokio::test]
    async fn the_calling_thread_is_free_during_the_work() {
        let offload = offload(1);
        let (release, released) = std::sync::mpsc::channel::<()>();
        let work = offload.run("computes", async move { released.recv().is_ok() });
        let other_task = async {
            tokio::task::yield_now().await;
            release.send(()).unwrap();
        };
        let (outcome, ()) = tokio::join!(work, other_task);
        assert_eq!(outcome, Some(true));
    }

    #[tokio::test]
    async fn computations_notice_that_their_caller_was_dropped() {
        let offload = offload(1);
        let (entered, mut started) = tokio::sync::mpsc::channel(1);
        let work = offload.run_light("computes", async move {
            entered.send(is_abandoned()).await.unwrap();
            while !is_abandoned() {
                thread::yield_now();
            }
        });
        tokio::select! {
            _ = work => unreachable!("its caller waits"),
            abandoned = started.recv() => assert_eq!(abandoned, Some(false)),
        }
        assert_eq!(offload.run("next", async { is_abandoned() }).await, Some(false));
        assert!(!is_abandoned());
    }

    #[tokio::test]
    async fn work_ends_with_its_caller_and_returns_its_permit() {
        let offload = offload(1);
        let (entered, mut started) = tokio::sync::mpsc::channel(MAX_RUNNING_PER_THREAD);
        let waiting: Vec<_> = (0..MAX_RUNNING_PER_THREAD)
            .map(|_| {
                let (offload, entered) = (Arc::clone(&offload), entered.clone());
                Box::pin(async move {
                    let work = async move {
                        entered.send(()).await.unwrap();
                        std::future::pending::<()>().await;
                    };
                    offload.run("waits", work).await
                })
            })
            .collect();
        let mut all = futures::future::select_all(waiting);
        for _ in 0..MAX_RUNNING_PER_THREAD {
            tokio::select! {
                () = async { drop((&mut all).await) } => unreachable!("it waits forever"),
                Some(()) = started.recv() => {}
            }
        }
        assert_eq!(offload.permits.available_permits(), 0);
        assert_eq!(offload.run_light("light", async { 2 }).await, Some(2), "light work needs no permit");
        drop(all);
        assert_eq!(offload.run("next", async { 1 }).await, Some(1));
    }
}
