//! Asks etcd how far it has come, once for all who ask at the same time, and waits until that is shown here.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::client::Client;
use super::wire::RangeRequest;
use crate::error::StoreError;
use crate::hub::Hub;

/// How many wait to be asked for; a caller beyond that waits for room.
const WAITING: usize = 1_024;

type Reply = oneshot::Sender<Result<i64, StoreError>>;

/// Where to ask.
#[derive(Clone)]
pub(super) struct Latest {
    asks: mpsc::Sender<Reply>,
    wanted: Arc<watch::Sender<i64>>,
    hub: Arc<Hub>,
    within: Duration,
}

impl Latest {
    /// The one who asks, and what it does until nobody is left to ask for. A linearizable read of this key tells.
    pub(super) fn new(
        client: Client,
        key: Vec<u8>,
        hub: Arc<Hub>,
        wanted: watch::Sender<i64>,
        within: Duration,
    ) -> (Self, BoxFuture<'static, ()>) {
        let (asks, asked) = mpsc::channel(WAITING);
        let latest = Self { asks, wanted: Arc::new(wanted), hub, within };
        (latest, Box::pin(serve(asked, client, key)))
    }

    /// The revision that etcd had at some time after this was called. It will be shown.
    pub(super) async fn revision(&self) -> Result<i64, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.asks.send(reply).await.map_err(|_| StoreError::Closed)?;
        let revision = answer.await.map_err(|_| StoreError::Closed)??;
        if revision > self.hub.revision() {
            self.wanted
                .send_if_modified(|wanted| std::mem::replace(wanted, revision.max(*wanted)) < revision);
        }
        Ok(revision)
    }

    /// Waits until everything is shown here that was acknowledged before this was called.
    pub(super) async fn reach(&self) -> Result<(), StoreError> {
        let revision = self.revision().await?;
        let mut shown = self.hub.revisions();
        tokio::select! {
            reached = timeout(self.within, shown.wait_for(|shown| *shown >= revision)) => match reached {
                Ok(reached) => reached.map(drop).map_err(|_| StoreError::Closed),
                Err(_) => Err(StoreError::Unavailable("what it has was not shown here in time".to_owned())),
            },
            // Whoever asks for us has ended: the store closes.
            () = self.asks.closed() => Err(StoreError::Closed),
        }
    }
}

async fn serve(mut asked: mpsc::Receiver<Reply>, client: Client, key: Vec<u8>) {
    let mut waiting = Vec::new();
    while asked.recv_many(&mut waiting, WAITING).await > 0 {
        let request = RangeRequest { key: key.clone(), count_only: true, ..RangeRequest::default() };
        let found = client.range(request).await;
        let found = found.map(|answer| answer.header.unwrap_or_default().revision);
        let found = found.map_err(super::failure::Failure::of_read);
        for reply in waiting.drain(..) {
            // Whoever has gone away does not wait any more.
            let _gone = reply.send(found.clone());
        }
    }
}
