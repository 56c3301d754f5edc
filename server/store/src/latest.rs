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
const WAITING: usize = 1_024;

tokio::task_local! {
    /// True if the current request has already requested the latest revision.
    static ASKED: Cell<bool>;
}

/// Runs a request that queries the latest revision of a shared database once instead of for each of its reads: every read
/// includes the commits that were acknowledged before the first read. After a rejected write the next read queries it again.
pub fn ask_once<T>(request: impl Future<Output = T>) -> impl Future<Output = T> {
    ASKED.scope(Cell::new(false), request)
}

/// Makes the next read of the current request query the latest revision again.
pub(crate) fn ask_again() {
    note_asked(false);
}

fn note_asked(asked: bool) {
    // Outside of a request each read queries the revision.
    let _no_request = ASKED.try_with(|noted| noted.set(asked));
}

type Reply = oneshot::Sender<Result<i64, StoreError>>;

/// Query for the latest revision of an engine.
pub(crate) trait Ask: Send + Sync + 'static {
    /// Error message if the commits of other processes do not become visible here in time.
    const LATE: &'static str;

    /// Returns a revision that the database had at some time after the call.
    fn ask(&self) -> impl Future<Output = Result<i64, StoreError>> + Send;

    /// Reports that the database is ahead of the visible revision: another process has written.
    fn is_ahead(&self, revision: i64);
}

/// Handle for queries of the latest revision.
#[derive(Clone)]
pub(crate) struct Latest {
    asks: mpsc::Sender<Reply>,
    hub: Arc<Hub>,
    /// Maximum wait for the commits of other processes.
    within: Duration,
    late: &'static str,
}

impl Latest {
    /// Returns the handle, and the task that runs the queries until all handles are dropped.
    pub(crate) fn new<A: Ask>(ask: A, hub: Arc<Hub>, within: Duration) -> (Self, BoxFuture<'static, ()>) {
        let (asks, asked) = mpsc::channel(WAITING);
        (Self { asks, hub: hub.clone(), within, late: A::LATE }, Box::pin(serve(asked, ask, hub)))
    }

    /// Returns a revision that the database had at some time after the call.
    pub(crate) async fn revision(&self) -> Result<i64, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.asks.send(reply).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Waits until every commit is visible here that was acknowledged before the call, or, within
    /// [`with_single_revision_check`], before the first such wait of the request.
    pub(crate) async fn reach(&self) -> Result<(), StoreError> {
        if ASKED.try_with(Cell::get).unwrap_or(false) {
            return Ok(());
        }
        let revision = self.revision().await?;
        let mut shown = self.hub.revisions();
        let reached = tokio::select! {
            reached = shown.wait_for(|shown| *shown >= revision) => reached.map(drop).map_err(|_| StoreError::Closed),
            // The query task has ended: the store is closing.
            () = self.asks.closed() => Err(StoreError::Closed),
            () = sleep(self.within) => Err(StoreError::Unavailable(self.late.to_owned())),
        };
        if reached.is_ok() {
            note_asked(true);
        }
        reached
    }

    /// Waits like [`LatestRevision::wait_linearizable`], but always queries the latest revision.
    pub(crate) async fn reach_again(&self) -> Result<(), StoreError> {
        ask_again();
        self.reach().await
    }
}

async fn serve(mut asked: mpsc::Receiver<Reply>, ask: impl Ask, hub: Arc<Hub>) {
    let mut waiting = Vec::new();
    while asked.recv_many(&mut waiting, WAITING).await > 0 {
        let found = ask.ask().await;
        if let Ok(revision) = found
            && revision > hub.revision()
        {
            ask.is_ahead(revision);
        }
        for reply in waiting.drain(..) {
            // A caller that is gone no longer waits.
            let _gone = reply.send(found.clone());
        }
    }
}
