//! Asks a database that others write to, too, how far it has come, once for all who ask at the same time.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use crate::error::StoreError;
use crate::hub::Hub;

/// How many wait to be asked for; a caller beyond that waits for room.
const WAITING: usize = 1_024;

tokio::task_local! {
    /// Whether the request that is being served has asked.
    static ASKED: Cell<bool>;
}

/// Serves a request that asks a database that others write to, too, once how far it has come, and not with each of its reads: all
/// that was acknowledged before the first of them is shown by every one. After a write that was refused it asks again.
pub fn ask_once<T>(request: impl Future<Output = T>) -> impl Future<Output = T> {
    ASKED.scope(Cell::new(false), request)
}

/// The next read of the request that is being served asks again.
pub(crate) fn ask_again() {
    note_asked(false);
}

fn note_asked(asked: bool) {
    // Whoever serves no request asks with each read.
    let _no_request = ASKED.try_with(|noted| noted.set(asked));
}

type Reply = oneshot::Sender<Result<i64, StoreError>>;

/// What asks an engine.
pub(crate) trait Ask: Send + Sync + 'static {
    /// The error when what others have written is not shown here in time.
    const LATE: &'static str;

    /// The revision that the database has at some time after this was called.
    fn ask(&self) -> impl Future<Output = Result<i64, StoreError>> + Send;

    /// The database is further than what is shown here: others have written.
    fn is_ahead(&self, revision: i64);
}

/// Where to ask.
#[derive(Clone)]
pub(crate) struct Latest {
    asks: mpsc::Sender<Reply>,
    hub: Arc<Hub>,
    /// How long it is waited for what others have written.
    within: Duration,
    late: &'static str,
}

impl Latest {
    /// And what the one who asks does until nobody is left to ask for.
    pub(crate) fn new<A: Ask>(ask: A, hub: Arc<Hub>, within: Duration) -> (Self, BoxFuture<'static, ()>) {
        let (asks, asked) = mpsc::channel(WAITING);
        (Self { asks, hub: hub.clone(), within, late: A::LATE }, Box::pin(serve(asked, ask, hub)))
    }

    /// The revision that the database had at some time after this was called.
    pub(crate) async fn revision(&self) -> Result<i64, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.asks.send(reply).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Waits until everything is shown here that was acknowledged before this was called, or before the request began that is
    /// being served.
    pub(crate) async fn reach(&self) -> Result<(), StoreError> {
        if ASKED.try_with(Cell::get).unwrap_or(false) {
            return Ok(());
        }
        let revision = self.revision().await?;
        let mut shown = self.hub.revisions();
        let reached = tokio::select! {
            reached = shown.wait_for(|shown| *shown >= revision) => reached.map(drop).map_err(|_| StoreError::Closed),
            // Whoever asks for us has ended: the store closes.
            () = self.asks.closed() => Err(StoreError::Closed),
            () = sleep(self.within) => Err(StoreError::Unavailable(self.late.to_owned())),
        };
        if reached.is_ok() {
            note_asked(true);
        }
        reached
    }

    /// The same, whether the request that is being served has asked or not.
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
            // Whoever has gone away does not wait any more.
            let _gone = reply.send(found.clone());
        }
    }
}
