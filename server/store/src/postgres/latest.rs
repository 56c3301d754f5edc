//! Asks the database how far it has come, once for all who ask at the same time.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::sleep;

use super::failure::{self, failed};
use super::open::{self, Meta};
use super::pool::{Connections, Lent};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::store::Identity;

/// How many wait to be asked for; a caller beyond that waits for room.
const WAITING: usize = 1_024;

type Reply = oneshot::Sender<Result<i64, StoreError>>;

/// Where to ask.
#[derive(Clone)]
pub(super) struct Latest {
    asks: mpsc::Sender<Reply>,
    /// How long it is waited for what others have written.
    within: Duration,
}

/// Who asks.
pub(super) struct Asking {
    pub(super) connections: Arc<Connections>,
    pub(super) hub: Arc<Hub>,
    pub(super) identity: Identity,
    /// Is notified when others have written.
    pub(super) wake: Arc<Notify>,
}

impl Latest {
    /// And what the one who asks does until nobody is left to ask for.
    pub(super) fn new(asking: Asking, within: Duration) -> (Self, BoxFuture<'static, ()>) {
        let (asks, asked) = mpsc::channel(WAITING);
        (Self { asks, within }, Box::pin(asking.serve(asked)))
    }

    /// The revision that the database had at some time after this was called.
    pub(super) async fn revision(&self) -> Result<i64, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.asks.send(reply).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Waits until everything is shown here that was acknowledged before this was called.
    pub(super) async fn reach(&self, hub: &Hub) -> Result<(), StoreError> {
        let revision = self.revision().await?;
        let mut shown = hub.revisions();
        tokio::select! {
            reached = shown.wait_for(|shown| *shown >= revision) => reached.map(drop).map_err(|_| StoreError::Closed),
            // Whoever asks for us has ended: the store closes.
            () = self.asks.closed() => Err(StoreError::Closed),
            () = sleep(self.within) => {
                Err(StoreError::Unavailable("what others have written is not read yet".to_owned()))
            }
        }
    }
}

impl Asking {
    async fn serve(self, mut asked: mpsc::Receiver<Reply>) {
        let mut waiting = Vec::new();
        while asked.recv_many(&mut waiting, WAITING).await > 0 {
            let found = self.revision().await;
            if found.as_ref().is_ok_and(|revision| *revision > self.hub.revision()) {
                self.wake.notify_one();
            }
            for reply in waiting.drain(..) {
                // Whoever has gone away does not wait any more.
                let _gone = reply.send(found.clone());
            }
        }
    }

    async fn revision(&self) -> Result<i64, StoreError> {
        let shown = self.hub.revision();
        let asked = match self.ask().await {
            // It may have been lost for long, which was found only now: then another one is asked by.
            Err(error) if failure::is_lost(&error) && !matches!(error, sqlx::Error::PoolTimedOut) => {
                self.ask().await
            }
            asked => asked,
        };
        let (meta, lent) = asked.map_err(failed)?;
        check(&meta, &self.identity, shown, &self.connections, &self.wake)?;
        lent.give_back().await.map_err(failed)?;
        Ok(meta.revision)
    }

    async fn ask(&self) -> Result<(Meta, Lent<'_>), sqlx::Error> {
        let mut lent = self.connections.take_to_ask().await?;
        let meta = self.connections.in_time(open::meta(&mut lent)).await?;
        Ok((meta, lent))
    }
}

/// Whether a database has what was shown. If not it is another one, a standby that is behind, or it has lost something: the writer
/// finds out which.
pub(super) fn check(
    meta: &Meta,
    known: &Identity,
    shown: i64,
    connections: &Connections,
    wake: &Notify,
) -> Result<(), StoreError> {
    if meta.identity == *known && meta.revision >= shown {
        return Ok(());
    }
    connections.forget();
    wake.notify_one();
    Err(StoreError::Unavailable("it does not have what was shown before".to_owned()))
}
