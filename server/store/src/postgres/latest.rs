//! Asks the database how far it has come, once for all who ask at the same time.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use sqlx::postgres::PgPool;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

use super::failure::{self, failed};
use super::open;
use crate::error::StoreError;
use crate::hub::Hub;

/// How many wait to be asked for; a caller beyond that waits for room.
const WAITING: usize = 1_024;

type Reply = oneshot::Sender<Result<i64, StoreError>>;

/// Where to ask.
#[derive(Clone)]
pub(super) struct Latest(mpsc::Sender<Reply>);

impl Latest {
    /// The one who asks, and what it does until nobody is left to ask for. `wake` is notified when others have written; the database has this long to answer.
    pub(super) fn new(
        pool: PgPool,
        hub: Arc<Hub>,
        wake: Arc<Notify>,
        within: Duration,
    ) -> (Self, BoxFuture<'static, ()>) {
        let (asks, asked) = mpsc::channel(WAITING);
        (Self(asks), Box::pin(serve(asked, pool, hub, wake, within)))
    }

    /// The revision that the database had at some time after this was called.
    pub(super) async fn revision(&self) -> Result<i64, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.0.send(reply).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Waits until everything is shown here that was acknowledged before this was called.
    pub(super) async fn reach(&self, hub: &Hub) -> Result<(), StoreError> {
        let revision = self.revision().await?;
        let mut shown = hub.revisions();
        tokio::select! {
            reached = shown.wait_for(|shown| *shown >= revision) => reached.map(drop).map_err(|_| StoreError::Closed),
            // Whoever asks for us has ended: the store closes.
            () = self.0.closed() => Err(StoreError::Closed),
        }
    }
}

async fn serve(
    mut asked: mpsc::Receiver<Reply>,
    pool: PgPool,
    hub: Arc<Hub>,
    wake: Arc<Notify>,
    within: Duration,
) {
    let mut waiting = Vec::new();
    while asked.recv_many(&mut waiting, WAITING).await > 0 {
        let found = revision(&pool, within).await;
        if found.as_ref().is_ok_and(|revision| *revision > hub.revision()) {
            wake.notify_one();
        }
        for reply in waiting.drain(..) {
            // Whoever has gone away does not wait any more.
            let _gone = reply.send(found.clone());
        }
    }
}

/// A connection that is lost is found to be so when it is used: then another one is.
async fn revision(pool: &PgPool, within: Duration) -> Result<i64, StoreError> {
    let mut others = pool.size();
    loop {
        match timeout(within, open::meta(pool)).await.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
            Err(error) if failure::is_lost(&error) && others > 0 => others -= 1,
            found => return found.map(|meta| meta.revision).map_err(failed),
        }
    }
}
