//! Workers of a queue: a success resets the failure count of a key, a failure adds the key again with rate limiting.

use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use super::{WorkKey, WorkQueue};
use crate::tasks::TaskSet;

/// Result of a reconcile without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconcileOutcome {
    /// The key is not processed again until it is added.
    Done,
    /// The key is processed again after this time.
    RequeueAfter(Duration),
}

/// Spawns `workers` tasks named `<name>` into `tasks`. Each takes a key and runs `reconcile`; an error
/// or a panic is logged, and the key is added again with rate limiting. When `tasks` is cancelled, the queue is
/// shut down, and each worker ends after its current key.
pub fn run_workers<K, F, Fut, E>(
    tasks: &TaskSet,
    name: &'static str,
    workers: usize,
    queue: WorkQueue<K>,
    reconcile: F,
) where
    K: WorkKey,
    F: Fn(K) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ReconcileOutcome, E>> + Send + 'static,
    E: Display + Send,
{
    let reconcile = Arc::new(reconcile);
    for _ in 0..workers.max(1) {
        let (queue, reconcile, stop) = (queue.clone(), reconcile.clone(), tasks.token());
        tasks.spawn(name, async move {
            while let Some(Some(work)) = stop.run_until_cancelled(queue.next()).await {
                let outcome = AssertUnwindSafe(reconcile(work.clone())).catch_unwind().await;
                finish_key(name, &queue, &work, outcome);
            }
            queue.shutdown();
        });
    }
}

fn finish_key<K: WorkKey, E: Display, P>(
    name: &str,
    queue: &WorkQueue<K>,
    key: &K,
    outcome: Result<Result<ReconcileOutcome, E>, P>,
) {
    match outcome {
        Ok(Ok(reconciled)) => {
            queue.forget(key);
            if let ReconcileOutcome::RequeueAfter(delay) = reconciled {
                queue.add_after(key.clone(), delay);
            }
        }
        Ok(Err(error)) => {
            tracing::warn!(controller = name, ?key, retries = queue.retries(key), %error, "reconcile failed");
            queue.add_rate_limited(key.clone());
        }
        Err(_) => {
            tracing::error!(controller = name, ?key, "reconcile panicked");
            queue.add_rate_limited(key.clone());
        }
    }
}
