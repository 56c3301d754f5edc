//! Writer: each Txn is one etcd transaction, and many of them run concurrently, so that etcd makes them durable together.
//! Txns of one request that touch the same object run one after another.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::leases::Leases;
use super::open::RETRY;
use super::plan::{Outcome, Plan};
use super::read::Reader;
use super::wire::{KeyValue, RangeRequest};
use crate::key::Key;
use crate::submit::{CommitRequest, Results};
use crate::txn::{Committed, Expect, Prepared, Txn, TxnError};

/// Maximum number of concurrent requests.
const REQUESTS: usize = 256;
/// Wait for a write to be published before progress is requested.
const UNASKED: Duration = Duration::from_millis(250);

/// Dependencies of writes.
pub(super) struct Writer {
    pub(super) reader: Arc<Reader>,
    pub(super) leases: Leases,
    /// Limits the number of concurrent transactions.
    pub(super) under_way: Semaphore,
    /// Maximum time until a write is published in this process.
    pub(super) within: Duration,
    /// Revision up to which the follower must publish.
    pub(super) wanted: watch::Sender<i64>,
}

impl Writer {
    /// Serves requests until the store closes, then the queued ones.
    pub(super) async fn run(&self, mut requests: mpsc::Receiver<CommitRequest>, closing: CancellationToken) {
        let mut served = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = closing.cancelled(), if !requests.is_closed() => requests.close(),
                Some(()) = served.next(), if !served.is_empty() => {}
                request = requests.recv(), if served.len() < REQUESTS => match request {
                    Some(request) => served.push(self.serve(request)),
                    None => break,
                },
            }
            let waiting = i64::try_from(requests.len()).unwrap_or(i64::MAX);
            self.reader.metrics.queue_depth.set(waiting);
        }
        while served.next().await.is_some() {}
    }

    async fn serve(&self, request: CommitRequest) {
        let mut results: Results = Vec::with_capacity(request.txns.len());
        let mut txns = request.txns.into_iter().peekable();
        while txns.peek().is_some() {
            let (mut touched, mut wave) = (HashSet::new(), Vec::new());
            while let Some(Prepared { txn, .. }) = txns.next_if(|next| is_apart(&next.txn, &touched)) {
                touched.extend(txn.operations.iter().map(|operation| operation.key.clone()));
                wave.push(self.commit(txn));
            }
            results.extend(futures::future::join_all(wave).await);
        }
        let refused = results.iter().filter(|result| result.is_err()).count();
        self.reader.metrics.refused.inc_by(refused as u64);
        // A write is not undone if its caller is gone.
        let _gone = request.reply.send(results);
    }

    async fn commit(&self, txn: Txn) -> Result<Committed, TxnError> {
        let _permit = self.under_way.acquire().await.map_err(|_| TxnError::Closed)?;
        let (reader, started) = (&self.reader, Instant::now());
        let plan = Plan::new(txn, &reader.keys)?;
        let shown = reader.hub.revision();
        if plan.is_empty() {
            return Ok(Committed { revision: shown, records: Vec::new() });
        }
        for (key, only_deletes) in plan.objects() {
            let is_unreadable = reader.cache.get(key).is_some_and(|record| record.value.is_unreadable());
            if is_unreadable && !only_deletes {
                return Err(TxnError::Unreadable { key: key.clone() });
            }
        }
        let stored = self.stored(&plan).await?;
        let witness = plan.witness(&stored);
        let outcome = match reader.client.txn(plan.request(stored)).await {
            Ok(answer) => plan.outcome(answer, shown)?,
            Err(failure) => {
                reader.metrics.failures.inc();
                tracing::error!(error = failure.logged(), "etcd did not confirm a write");
                let error = failure.of_write();
                match self.settle(witness, &error, shown).await {
                    Some(revision) => Outcome::Done(plan.done_at(revision)),
                    None => return Err(error),
                }
            }
        };
        match outcome {
            Outcome::Done(committed) => {
                self.shown(committed.revision).await?;
                reader.metrics.commit_seconds.observe(started.elapsed().as_secs_f64());
                Ok(committed)
            }
            Outcome::Stopped(reason) => Err(TxnError::ReadOnly(reason)),
            Outcome::Refused { key, expect, current } => Err(self.refusal(key, expect, current).await),
        }
    }

    /// Determines if a Txn was committed although its response was lost or reports a lack of space: the first transaction
    /// without space is committed nevertheless. Returns its revision; `None` if it was not committed, or may still be.
    async fn settle(&self, witness: Option<(Vec<u8>, Vec<u8>)>, error: &TxnError, shown: i64) -> Option<i64> {
        if !matches!(error, TxnError::Unknown(_) | TxnError::Full(_)) {
            return None;
        }
        let (key, value) = witness?;
        let looked = async {
            loop {
                let request = RangeRequest { key: key.clone(), ..RangeRequest::default() };
                match self.reader.client.range(request).await {
                    Ok(answer) => break answer.kvs.into_iter().next(),
                    Err(_) => sleep(RETRY).await,
                }
            }
        };
        let found = timeout(self.within, looked).await.ok()??;
        (found.value == value && found.mod_revision > shown).then_some(found.mod_revision)
    }

    async fn stored(&self, plan: &Plan) -> Result<Vec<(Vec<u8>, i64)>, TxnError> {
        let values = &self.reader.values;
        let mut stored = Vec::new();
        for (key, place, value) in plan.puts() {
            let lease = match values.layout.time_to_live(key.resource()) {
                Some(time) => self.leases.lease(&self.reader.client, time).await.map_err(not_written)?,
                None => 0,
            };
            stored.push((values.encode(key, place, value)?, lease));
        }
        Ok(stored)
    }

    /// Waits until a write and everything before it is published.
    async fn shown(&self, revision: i64) -> Result<(), TxnError> {
        let mut shown = self.reader.hub.revisions();
        if timeout(UNASKED, shown.wait_for(|shown| *shown >= revision)).await.is_err() {
            self.wanted
                .send_if_modified(|wanted| std::mem::replace(wanted, revision.max(*wanted)) < revision);
        }
        match timeout(self.within, shown.wait_for(|shown| *shown >= revision)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(TxnError::Unknown("the store has closed".to_owned())),
            Err(_) => Err(TxnError::Unknown("committed, but timed out waiting for the revision".to_owned())),
        }
    }

    async fn refusal(&self, key: Key, expect: Expect, current: Option<KeyValue>) -> TxnError {
        let Some(current) = current else { return TxnError::NotFound { key } };
        // Callers read the object after this error.
        if let Err(error) = self.shown_or_error(current.mod_revision).await {
            return error;
        }
        let current = match self.reader.values.decode(key.clone(), &current).await {
            Ok(Ok(current)) => Arc::new(current),
            Ok(Err(_)) => return TxnError::Unreadable { key },
            Err(failure) => return failure.of_write(),
        };
        match expect {
            Expect::Absent => TxnError::Exists { key, current },
            _ => TxnError::Conflict { key, current },
        }
    }

    async fn shown_or_error(&self, revision: i64) -> Result<(), TxnError> {
        let late = |_| TxnError::Unavailable("timed out waiting for the latest revision".to_owned());
        self.shown(revision).await.map_err(late)
    }
}

/// Converts a failure before the write.
fn not_written(failure: Failure) -> TxnError {
    match failure.of_write() {
        TxnError::Unknown(reason) => TxnError::Unavailable(reason),
        error => error,
    }
}

/// Returns true if a Txn touches none of these objects.
fn is_apart(txn: &Txn, touched: &HashSet<Key>) -> bool {
    touched.is_empty() || !txn.operations.iter().any(|operation| touched.contains(&operation.key))
}
