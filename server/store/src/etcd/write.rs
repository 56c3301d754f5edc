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

use super::failure::EtcdFailure;
use super::leases::Leases;
use super::open::RETRY_DELAY;
use super::plan::{TxnOutcome, TxnPlan};
use super::reader::Reader;
use super::wire::{KeyValue, RangeRequest};
use crate::key::Key;
use crate::submit::{CommitRequest, Results};
use crate::txn::{CommittedTxn, Precondition, PreparedTxn, Txn, TxnError};

/// Maximum number of concurrent requests.
const MAX_CONCURRENT_REQUESTS: usize = 256;
/// Wait for a write to be published before progress is requested.
const PROGRESS_DELAY: Duration = Duration::from_millis(250);

/// Dependencies of writes.
pub(super) struct Writer {
    pub(super) reader: Arc<Reader>,
    pub(super) leases: Leases,
    /// Limits the number of concurrent transactions.
    pub(super) txn_permits: Semaphore,
    /// Maximum time until a write is published in this process.
    pub(super) publish_timeout: Duration,
    /// Revision up to which the follower must publish.
    pub(super) wanted_revision: watch::Sender<i64>,
}

impl Writer {
    /// Serves requests until the store closes, then the queued ones.
    pub(super) async fn run(&self, mut requests: mpsc::Receiver<CommitRequest>, closing: CancellationToken) {
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = closing.cancelled(), if !requests.is_closed() => requests.close(),
                Some(()) = running.next(), if !running.is_empty() => {}
                request = requests.recv(), if running.len() < MAX_CONCURRENT_REQUESTS => match request {
                    Some(request) => running.push(self.serve(request)),
                    None => break,
                },
            }
            let queue_depth = i64::try_from(requests.len()).unwrap_or(i64::MAX);
            self.reader.metrics.queue_depth.set(queue_depth);
        }
        while running.next().await.is_some() {}
    }

    async fn serve(&self, request: CommitRequest) {
        let mut results: Results = Vec::with_capacity(request.txns.len());
        let mut txns = request.txns.into_iter().peekable();
        while txns.peek().is_some() {
            let (mut touched, mut wave) = (HashSet::new(), Vec::new());
            while let Some(PreparedTxn { txn, .. }) = txns.next_if(|next| is_disjoint(&next.txn, &touched)) {
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

    async fn commit(&self, txn: Txn) -> Result<CommittedTxn, TxnError> {
        let _permit = self.txn_permits.acquire().await.map_err(|_| TxnError::Closed)?;
        let (reader, started) = (&self.reader, Instant::now());
        let plan = TxnPlan::new(txn, &reader.keys)?;
        let published_revision = reader.hub.revision();
        if plan.is_empty() {
            return Ok(CommittedTxn { revision: published_revision, records: Vec::new() });
        }
        for (key, only_deletes) in plan.objects() {
            let is_unreadable = reader.cache.get(key).is_some_and(|record| record.value.is_unreadable());
            if is_unreadable && !only_deletes {
                return Err(TxnError::Unreadable { key: key.clone() });
            }
        }
        let stored = self.encode_values(&plan).await?;
        let probe_key = plan.probe_key(&stored);
        let outcome = match reader.client.txn(plan.request(stored)).await {
            Ok(response) => plan.outcome(response, published_revision)?,
            Err(failure) => {
                reader.metrics.failures.inc();
                tracing::error!(error = failure.log_text(), "etcd did not confirm a write");
                let error = failure.to_txn_error();
                match self.resolve_in_doubt(probe_key, &error, published_revision).await {
                    Some(revision) => TxnOutcome::Done(plan.committed_at(revision)),
                    None => return Err(error),
                }
            }
        };
        match outcome {
            TxnOutcome::Done(committed) => {
                self.wait_until_published(committed.revision).await?;
                reader.metrics.commit_seconds.observe(started.elapsed().as_secs_f64());
                Ok(committed)
            }
            TxnOutcome::Stopped(reason) => Err(TxnError::ReadOnly(reason)),
            TxnOutcome::Refused { key, precondition, current } => {
                Err(self.refusal_error(key, precondition, current).await)
            }
        }
    }

    /// Determines if a Txn was committed although its response was lost or reports a lack of space: the first transaction
    /// without space is committed nevertheless. Returns its revision; `None` if it was not committed, or may still be.
    async fn resolve_in_doubt(
        &self,
        probe_key: Option<(Vec<u8>, Vec<u8>)>,
        error: &TxnError,
        published: i64,
    ) -> Option<i64> {
        if !matches!(error, TxnError::InDoubt(_) | TxnError::Full(_)) {
            return None;
        }
        let (key, value) = probe_key?;
        let looked = async {
            loop {
                let request = RangeRequest { key: key.clone(), ..RangeRequest::default() };
                match self.reader.client.range(request).await {
                    Ok(answer) => break answer.kvs.into_iter().next(),
                    Err(_) => sleep(RETRY_DELAY).await,
                }
            }
        };
        let found = timeout(self.publish_timeout, looked).await.ok()??;
        (found.value == value && found.mod_revision > published).then_some(found.mod_revision)
    }

    async fn encode_values(&self, plan: &TxnPlan) -> Result<Vec<(Vec<u8>, i64)>, TxnError> {
        let values = &self.reader.values;
        let mut stored = Vec::new();
        for (key, place, value) in plan.puts() {
            let lease = match values.layout.time_to_live(key.resource()) {
                Some(time) => {
                    self.leases.lease(&self.reader.client, time).await.map_err(not_written_error)?
                }
                None => 0,
            };
            stored.push((values.encode(key, place, value)?, lease));
        }
        Ok(stored)
    }

    /// Waits until a write and everything before it is published.
    async fn wait_until_published(&self, revision: i64) -> Result<(), TxnError> {
        let mut revisions = self.reader.hub.revisions();
        if timeout(PROGRESS_DELAY, revisions.wait_for(|current| *current >= revision)).await.is_err() {
            self.wanted_revision
                .send_if_modified(|wanted| std::mem::replace(wanted, revision.max(*wanted)) < revision);
        }
        match timeout(self.publish_timeout, revisions.wait_for(|current| *current >= revision)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(TxnError::InDoubt("the store has closed".to_owned())),
            Err(_) => Err(TxnError::InDoubt("committed, but timed out waiting for the revision".to_owned())),
        }
    }

    async fn refusal_error(&self, key: Key, expect: Precondition, current: Option<KeyValue>) -> TxnError {
        let Some(current) = current else { return TxnError::NotFound { key } };
        // Callers read the object after this error.
        if let Err(error) = self.wait_until_published_or_error(current.mod_revision).await {
            return error;
        }
        let current = match self.reader.values.decode(key.clone(), &current).await {
            Ok(Ok(current)) => Arc::new(current),
            Ok(Err(_)) => return TxnError::Unreadable { key },
            Err(failure) => return failure.to_txn_error(),
        };
        match expect {
            Precondition::Absent => TxnError::Exists { key, current },
            _ => TxnError::Conflict { key, current },
        }
    }

    async fn wait_until_published_or_error(&self, revision: i64) -> Result<(), TxnError> {
        let timeout_error = |_| TxnError::Unavailable("timed out waiting for the latest revision".to_owned());
        self.wait_until_published(revision).await.map_err(timeout_error)
    }
}

/// Converts a failure before the write.
fn not_written_error(failure: EtcdFailure) -> TxnError {
    match failure.to_txn_error() {
        TxnError::InDoubt(reason) => TxnError::Unavailable(reason),
        error => error,
    }
}

/// Returns true if a Txn touches none of these objects.
fn is_disjoint(txn: &Txn, touched: &HashSet<Key>) -> bool {
    touched.is_empty() || !txn.operations.iter().any(|operation| touched.contains(&operation.key))
}
