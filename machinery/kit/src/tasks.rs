//! Spawning of tasks: every task has a name, an owner and an end. No other module spawns.
//!
//! Does not depend on the work of tasks. Futures are wrapped by combinators instead of async blocks, because a block that awaits
//! a captured future stores it a second time, and there are many connections and watches. A task ends when its future ends, when
//! the set's token cancels it, or when the grace period of [`TaskSet::shutdown`] is over and it is aborted.

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio_util::future::FutureExt as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::lifecycle::Signal;

/// Name of a task in logs and in [`TaskSet::running`].
pub type TaskName = Cow<'static, str>;

/// Reason why the process must end: a critical task panicked, failed, or ended before it was cancelled.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{task}: {reason}")]
pub struct TaskFailure {
    /// Name of the task or hook that failed.
    pub task: String,
    /// Error of the task, or its behavior (`panicked: ...`, `ended unexpectedly`).
    pub reason: String,
}

/// Handle of a set of named tasks that end together. Clones share the set.
#[derive(Clone, Debug)]
pub struct TaskSet {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    token: CancellationToken,
    tracker: TaskTracker,
    running: Mutex<HashMap<u64, TaskEntry>>,
    next: AtomicU64,
    panics: AtomicU64,
    failed: Signal,
    failure: Mutex<Option<TaskFailure>>,
}

#[derive(Debug)]
struct TaskEntry {
    name: TaskName,
    abort: Option<AbortHandle>,
}

/// Guard that removes the entry of a task however it ends, also if it is aborted.
struct TaskRegistration {
    set: TaskSet,
    id: u64,
}

impl Drop for TaskRegistration {
    fn drop(&mut self) {
        self.set.inner.running.lock().remove(&self.id);
    }
}

impl Default for TaskSet {
    fn default() -> Self {
        Self::new()
    }
}

impl TaskSet {
    /// Returns an empty set with a new cancellation token.
    pub fn new() -> Self {
        Self::with_token(CancellationToken::new())
    }

    /// Returns an empty set that is cancelled with `token`.
    pub fn with_token(token: CancellationToken) -> Self {
        Self {
            inner: Arc::new(Inner {
                token,
                tracker: TaskTracker::new(),
                running: Mutex::default(),
                next: AtomicU64::new(0),
                panics: AtomicU64::new(0),
                failed: Signal::new("TaskFailed"),
                failure: Mutex::new(None),
            }),
        }
    }

    /// Returns the token that requests tasks to end. Long-lived loops select on `token().cancelled()`.
    pub fn token(&self) -> CancellationToken {
        self.inner.token.clone()
    }

    /// Requests every task to end, without waiting.
    pub fn cancel(&self) {
        self.inner.token.cancel();
    }

    /// Spawns a task. A panic is logged and counted, and ends this task only.
    pub fn spawn<F>(&self, name: impl Into<TaskName>, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.track(name.into(), false, future.map(Ok).boxed());
    }

    /// Spawns a task as [`TaskSet::spawn`] does, on another runtime of this process.
    pub fn spawn_on<F>(&self, runtime: &Handle, name: impl Into<TaskName>, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let _entered = runtime.enter();
        self.spawn(name, future);
    }

    /// Spawns a task that is dropped at its next await point once the set is cancelled.
    pub fn spawn_until_cancelled<F>(&self, name: impl Into<TaskName>, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn(name, future.with_cancellation_token_owned(self.token()).map(drop));
    }

    /// Spawns a task that the process requires: if it panics, returns an error, or returns
    /// before the set is cancelled, [`TaskSet::failed`] resolves and the process must end.
    pub fn spawn_critical<F, E>(&self, name: impl Into<TaskName>, future: F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display,
    {
        self.track(name.into(), true, future.map_err(|error| error.to_string()).boxed());
    }

    /// Records that the process must end. Only the first cause is stored.
    pub fn fail(&self, task: &str, reason: &str) {
        tracing::error!(task, error = reason, "critical task failed, ending the process");
        self.inner
            .failure
            .lock()
            .get_or_insert_with(|| TaskFailure { task: task.to_owned(), reason: reason.to_owned() });
        self.inner.failed.signal();
    }

    /// Waits until a critical task has failed, and returns its name and the reason. Never resolves otherwise.
    pub async fn failed(&self) -> TaskFailure {
        self.inner.failed.signaled().await;
        self.failure().unwrap_or_else(|| TaskFailure { task: String::new(), reason: String::new() })
    }

    /// Returns the first critical failure, if any.
    pub fn failure(&self) -> Option<TaskFailure> {
        self.inner.failure.lock().clone()
    }

    /// Returns the number of running tasks by name.
    pub fn running(&self) -> BTreeMap<String, usize> {
        let mut names = BTreeMap::new();
        for entry in self.inner.running.lock().values() {
            *names.entry(entry.name.to_string()).or_insert(0) += 1;
        }
        names
    }

    /// Returns the number of tasks of this set that have panicked.
    pub fn panics(&self) -> u64 {
        self.inner.panics.load(Ordering::Relaxed)
    }

    /// Cancels the token, waits up to `grace` for all tasks, aborts the rest and waits for them as well.
    /// Returns the names of the aborted tasks, sorted.
    pub async fn shutdown(&self, grace: Duration) -> Vec<String> {
        self.inner.token.cancel();
        self.inner.tracker.close();
        if tokio::time::timeout(grace, self.inner.tracker.wait()).await.is_ok() {
            return Vec::new();
        }
        let (mut names, handles): (Vec<String>, Vec<Option<AbortHandle>>) = {
            let running = self.inner.running.lock();
            running.values().map(|entry| (entry.name.to_string(), entry.abort.clone())).unzip()
        };
        handles.into_iter().flatten().for_each(|handle| handle.abort());
        self.inner.tracker.wait().await;
        names.sort();
        names
    }

    /// Returns an executor for hyper (`hyper::rt::Executor`) whose tasks belong to this set under `name`.
    pub fn executor(&self, name: impl Into<TaskName>) -> TaskExecutor {
        TaskExecutor { tasks: self.clone(), name: name.into() }
    }

    fn report_panic(&self, task: &str, text: &str) {
        self.inner.panics.fetch_add(1, Ordering::Relaxed);
        tracing::error!(task, panic = text, "task panicked");
    }

    /// Handles the end of a task.
    fn on_ended(
        &self,
        task: &str,
        is_critical: bool,
        outcome: Result<Result<(), String>, Box<dyn Any + Send>>,
    ) {
        match outcome {
            Ok(Ok(())) if !is_critical || self.inner.token.is_cancelled() => {}
            Ok(Ok(())) => self.fail(task, "ended unexpectedly"),
            Ok(Err(error)) => self.fail(task, &error),
            Err(panic) => {
                let text = panic_text(&*panic);
                self.report_panic(task, &text);
                if is_critical {
                    self.fail(task, &format!("panicked: {text}"));
                }
            }
        }
    }

    /// Spawns a boxed future, so that the code that drives tasks is compiled once and not for each of some hundred future types.
    #[expect(clippy::disallowed_methods, reason = "the only function that spawns")]
    fn track(&self, name: TaskName, is_critical: bool, future: BoxFuture<'static, Result<(), String>>) {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        // The entry is inserted before the task starts, so that a task that ends at once can remove it.
        self.inner.running.lock().insert(id, TaskEntry { name: name.clone(), abort: None });
        let registration = TaskRegistration { set: self.clone(), id };
        let tracked = AssertUnwindSafe(future)
            .catch_unwind()
            .map(move |outcome| registration.set.on_ended(&name, is_critical, outcome));
        let abort = tokio::spawn(self.inner.tracker.track_future(tracked)).abort_handle();
        if let Some(entry) = self.inner.running.lock().get_mut(&id) {
            entry.abort = Some(abort);
        }
    }
}

/// Runs blocking work (such as file access) on tokio's blocking threads, whose number is bounded, and waits for it. Returns
/// `None` if it panicked or the runtime is shutting down.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// Executor that spawns the connection tasks of hyper into a [`TaskSet`].
#[derive(Clone, Debug)]
pub struct TaskExecutor {
    tasks: TaskSet,
    name: TaskName,
}

impl<F> hyper::rt::Executor<F> for TaskExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        self.tasks.spawn(self.name.clone(), future.map(drop));
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panicking_critical_task_fails_the_process() {
        let tasks = TaskSet::new();
        tasks.spawn_critical("store-writer", async {
            if true {
                panic!("disk failed");
            }
            Ok::<(), String>(())
        });
        let failure = tasks.failed().await;
        assert_eq!(failure.to_string(), "store-writer: panicked: disk failed");
        assert_eq!(tasks.panics(), 1);
    }

    #[tokio::test]
    async fn a_critical_task_may_end_only_after_cancellation() {
        let tasks = TaskSet::new();
        let token = tasks.token();
        tasks.spawn_critical("obedient", async move {
            token.cancelled().await;
            Ok::<(), String>(())
        });
        assert!(tasks.shutdown(Duration::from_secs(5)).await.is_empty());
        assert!(tasks.failure().is_none());

        let tasks = TaskSet::new();
        tasks.spawn_critical("early", async { Ok::<(), String>(()) });
        assert_eq!(tasks.failed().await.reason, "ended unexpectedly");
    }

    #[tokio::test]
    async fn a_panic_in_a_task_that_is_not_critical_ends_only_that_task() {
        let tasks = TaskSet::new();
        tasks.spawn("clumsy", async { panic!("oops") });
        assert!(tasks.shutdown(Duration::from_secs(5)).await.is_empty());
        assert_eq!((tasks.panics(), tasks.failure().is_none()), (1, true));
    }

    #[tokio::test]
    async fn shutdown_aborts_and_returns_tasks_that_exceed_the_grace_period() {
        let tasks = TaskSet::new();
        tasks.spawn("stubborn", std::future::pending());
        tasks.spawn_until_cancelled("polite", std::future::pending());
        assert_eq!(tasks.running().len(), 2);
        assert_eq!(tasks.shutdown(Duration::from_millis(20)).await, ["stubborn"]);
        assert!(tasks.running().is_empty());
    }
}
