//! Requests the latest revision of a database that other processes write to. Concurrent callers share one query.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use crate::error::StoreError;
use crate::hub::Hub;

/// Maximum number of callers in the queue; more callers wait for room in the queue.
const QUEUE_CAPACITY: usize = 1_024;

tokio::task_local! {
    /// True if the current request has already requested the latest revision.
    static REVISION_CHECKED: Cell<bool>;
}

/// Runs a request that queries the latest revision of a shared database once instead of for each of its reads: every read
/// includes the commits that were acknowledged before the first read. After a rejected write the next read queries it again.
pub fn with_single_revision_check<T>(request: impl Future<Output = T>) -> impl Future<Output = T> {
    REVISION_CHECKED.scope(Cell::new(false), request)
}

/// Makes the next read of the current request query the latest revision again.
pub(crate) fn reset_revision_check() {
    set_revision_checked(false);
}

fn set_revision_checked(is_checked: bool) {
    // Outside of a request each read queries the revision.
    let _no_request = REVISION_CHECKED.try_with(|flag| flag.set(is_checked));
}

type ReplySender = oneshot::Sender<Result<i64, StoreError>>;

/// Query for the latest revision of an engine.
pub(crate) trait QueryLatest: Send + Sync + 'static {
    /// Error message if the commits of other processes do not become visible here in time.
    const TIMEOUT_MESSAGE: &'static str;

    /// Returns a revision that the database had at some time after the call.
    fn query_latest(&self) -> impl Future<Output = Result<i64, StoreError>> + Send;

    /// Reports that the database is ahead of the visible revision: another process has written.
    fn on_database_ahead(&self, revision: i64);
}

/// Handle for queries of the latest revision.
#[derive(Clone)]
pub(crate) struct LatestRevision {
    requests: mpsc::Sender<ReplySender>,
    hub: Arc<Hub>,
    /// Maximum wait for the commits of other processes.
    timeout: Duration,
    timeout_message: &'static str,
}

impl LatestRevision {
    /// Returns the handle, and the task that runs the queries until all handles are dropped.
    pub(crate) fn new<A: QueryLatest>(
        query: A,
        hub: Arc<Hub>,
        timeout: Duration,
    ) -> (Self, BoxFuture<'static, ()>) {
        let (requests, queue) = mpsc::channel(QUEUE_CAPACITY);
        (
            Self { requests, hub: hub.clone(), timeout, timeout_message: A::TIMEOUT_MESSAGE },
            Box::pin(run_queries(queue, query, hub)),
        )
    }

    /// Returns a revision that the database had at some time after the call.
    pub(crate) async fn revision(&self) -> Result<i64, StoreError> {
        let (reply, response) = oneshot::channel();
        self.requests.send(reply).await.map_err(|_| StoreError::Closed)?;
        response.await.map_err(|_| StoreError::Closed)?
    }

    /// Waits until every commit is visible here that was acknowledged before the call, or, within
    /// [`with_single_revision_check`], before the first such wait of the request.
    pub(crate) async fn wait_linearizable(&self) -> Result<(), StoreError> {
        if REVISION_CHECKED.try_with(Cell::get).unwrap_or(false) {
            return Ok(());
        }
        let revision = self.revision().await?;
        let mut revisions = self.hub.revisions();
        let result = tokio::select! {
            result = revisions.wait_for(|current| *current >= revision) => result.map(drop).map_err(|_| StoreError::Closed),
            // The query task has ended: the store is closing.
            () = self.requests.closed() => Err(StoreError::Closed),
            () = sleep(self.timeout) => Err(StoreError::Unavailable(self.timeout_message.to_owned())),
        };
        if result.is_ok() {
            set_revision_checked(true);
        }
        result
    }

    /// Waits like [`LatestRevision::wait_linearizable`], but always queries the latest revision.
    pub(crate) async fn wait_linearizable_fresh(&self) -> Result<(), StoreError> {
        reset_revision_check();
        self.wait_linearizable().await
    }
}

async fn run_queries(mut requests: mpsc::Receiver<ReplySender>, query: impl QueryLatest, hub: Arc<Hub>) {
    let mut replies = Vec::new();
    while requests.recv_many(&mut replies, QUEUE_CAPACITY).await > 0 {
        let found = query.query_latest().await;
        if let Ok(revision) = found
            && revision > hub.revision()
        {
            query.on_database_ahead(revision);
        }
        for reply in replies.drain(..) {
            // A caller that is gone no longer waits.
            let _gone = reply.send(found.clone());
        }
    }
}
