//! Shared transactions: writes that the quotas of one namespace count. While one transaction is being committed, new writes
//! gather in the next one, which updates each quota once for all of them.
//!
//! Each write is admitted against the usage after all earlier writes, committed or not. If one write makes a transaction fail,
//! that write gets the error and the others are retried. No task is spawned: each writer that waits for a transaction polls it,
//! so no writer depends on another one.

mod content;
mod counted_write;
mod encoder;
mod outcome;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use portico_machinery::{Object, Status};
use portico_store::{Key, Record, Store, TxnError};

use content::{CountResult, TransactionContent, TransactionState};
pub(super) use counted_write::CountedWrite;
pub(super) use encoder::Encoder;
pub(super) use outcome::TransactionOutcome;
use portico_quota::ResourceList;
use portico_registry::preconditions::is_about_any;

/// Transactions of all namespaces with counted writes in progress.
#[derive(Default)]
pub(crate) struct SharedTransactions {
    namespaces: Mutex<HashMap<Box<str>, Arc<Mutex<Queue>>>>,
    /// Set once the quotas are kept in memory, so that they can be read without waiting.
    pub(super) quotas_pinned: OnceLock<()>,
}

/// Guard for the transactions of one namespace, held while a write to the namespace is in progress.
pub(super) struct NamespaceGuard<'a> {
    transactions: &'a SharedTransactions,
    namespace: &'a str,
    /// `None` only during drop.
    queue: Option<Arc<Mutex<Queue>>>,
}

/// Transactions of one namespace.
#[derive(Default)]
struct Queue {
    /// The newest transaction.
    newest: Option<Arc<Transaction>>,
}

/// Transaction shared by several writes.
struct Transaction {
    content: Arc<Mutex<TransactionContent>>,
    outcome: OutcomeFuture,
}

/// Future of the outcome of a transaction. Polling the future executes the transaction.
pub(super) type OutcomeFuture = Shared<BoxFuture<'static, Arc<TransactionOutcome>>>;

/// Result of joining a transaction.
pub(super) enum JoinResult {
    /// The write takes nothing from any quota.
    Uncounted,
    /// The write would fail, because an object is not in the expected state.
    Rejected(TxnError),
    /// The write must wait for this outcome and join again.
    Wait(OutcomeFuture),
    /// The write is part of a transaction.
    Member(Member),
}

/// Write in a transaction. If it is dropped before the transaction is closed, the other writes join again.
pub(super) struct Member {
    content: Arc<Mutex<TransactionContent>>,
    outcome: OutcomeFuture,
    /// Index of the first operation of the write.
    first_operation: usize,
}

impl SharedTransactions {
    /// Returns the guard of a namespace, for one write.
    pub(super) fn enter<'a>(&'a self, namespace: &'a str) -> NamespaceGuard<'a> {
        let queue = Arc::clone(self.namespaces.lock().entry(namespace.into()).or_default());
        NamespaceGuard { transactions: self, namespace, queue: Some(queue) }
    }
}

impl Drop for NamespaceGuard<'_> {
    /// Removes the queue of the namespace with its last write. The writers that polled its transactions have seen the outcome or
    /// were cancelled, so no writer waits for it.
    fn drop(&mut self) {
        let mut namespaces = self.transactions.namespaces.lock();
        drop(self.queue.take());
        if namespaces.get(self.namespace).is_some_and(|queue| Arc::strong_count(queue) == 1) {
            namespaces.remove(self.namespace);
        }
    }
}

impl NamespaceGuard<'_> {
    /// Joins the open transaction of the namespace or begins the next one. `amounts_taken` returns the amounts that the write
    /// takes from each quota.
    ///
    /// # Errors
    /// The error of `amounts_taken` if the write does not fit in the stored quotas.
    pub(super) fn join<E>(
        &self,
        write: &CountedWrite<'_>,
        amounts_taken: impl Fn(&[&Object]) -> Result<Vec<ResourceList>, E>,
    ) -> Result<JoinResult, E> {
        let Some(queue) = &self.queue else { return Ok(JoinResult::Rejected(TxnError::Closed)) };
        let mut queue = queue.lock();
        if let Some(error) = write.expected_error() {
            // Upstream checks quotas before it checks whether the object exists.
            if matches!(error, TxnError::Exists { .. }) {
                write.check_against_stored(self.namespace, &amounts_taken)?;
            }
            return Ok(JoinResult::Rejected(error));
        }
        let newest = queue.newest.clone().filter(|newest| newest.outcome.peek().is_none());
        let Some(newest) = newest else {
            let Some(quotas) = write.quotas(self.namespace) else {
                let message = "the quotas of the namespace cannot be read".to_owned();
                return Ok(JoinResult::Rejected(TxnError::Unavailable(message)));
            };
            let content = TransactionContent::from_stored(&quotas);
            return queue.begin(write, content, None, &amounts_taken);
        };
        let mut content = newest.content.lock();
        let retry_later = || Ok(JoinResult::Wait(newest.outcome.clone()));
        if write.operations.iter().any(|operation| content.keys.contains(&operation.key)) {
            return retry_later();
        }
        match content.state {
            TransactionState::Abandoned => retry_later(),
            TransactionState::Open if content.is_full(write) => retry_later(),
            TransactionState::Open => match content.count_write(write, &amounts_taken) {
                Ok(CountResult::Uncounted) => Ok(JoinResult::Uncounted),
                Ok(CountResult::Counted) => Ok(JoinResult::Member(newest.add(&mut content, write))),
                Ok(CountResult::TooMany) => retry_later(),
                // Usage that is not committed yet must not cause a refusal.
                Err(_) => {
                    write.check_against_stored(self.namespace, &amounts_taken).and_then(|()| retry_later())
                }
            },
            TransactionState::Closed
                if !write.quotas(self.namespace).is_some_and(|quotas| content.starts_from(&quotas)) =>
            {
                retry_later()
            }
            TransactionState::Closed => {
                let next = content.next();
                let previous = newest.outcome.clone();
                drop(content);
                match queue.begin(write, next, Some(previous), &amounts_taken) {
                    Err(_) => write
                        .check_against_stored(self.namespace, &amounts_taken)
                        .and_then(|()| retry_later()),
                    transaction => transaction,
                }
            }
        }
    }
}

impl Queue {
    fn begin<E>(
        &mut self,
        write: &CountedWrite<'_>,
        mut content: TransactionContent,
        previous: Option<OutcomeFuture>,
        amounts_taken: &impl Fn(&[&Object]) -> Result<Vec<ResourceList>, E>,
    ) -> Result<JoinResult, E> {
        if content.count_write(write, amounts_taken)? == CountResult::Uncounted {
            return Ok(JoinResult::Uncounted);
        }
        let content = Arc::new(Mutex::new(content));
        let (store, encoder) = (Arc::clone(write.store), write.encoder.clone());
        let outcome = catch_panic(commit(store, encoder, Arc::clone(&content), previous)).boxed().shared();
        let transaction = Arc::new(Transaction { content, outcome });
        let member = transaction.add(&mut transaction.content.lock(), write);
        self.newest = Some(transaction);
        Ok(JoinResult::Member(member))
    }
}

impl Transaction {
    fn add(&self, content: &mut TransactionContent, write: &CountedWrite<'_>) -> Member {
        let first_operation = content.operations.len();
        content.writes += 1;
        content.bytes += write.bytes();
        content.keys.extend(write.operations.iter().map(|operation| operation.key.clone()));
        content.operations.extend(write.operations.iter().chain(write.checks).cloned());
        Member { content: Arc::clone(&self.content), outcome: self.outcome.clone(), first_operation }
    }
}

/// Returns the outcome of a transaction. A panic becomes an error, because every caller that polls a shared future after a panic
/// would panic as well.
async fn catch_panic(transaction: impl Future<Output = Arc<TransactionOutcome>>) -> Arc<TransactionOutcome> {
    let result = AssertUnwindSafe(transaction).catch_unwind().await;
    result.unwrap_or_else(|_| {
        let message = "the quota transaction panicked";
        Arc::new(TransactionOutcome::Failed(TxnError::InDoubt(message.to_owned())))
    })
}

/// Waits for the previous transaction, closes this one and commits it.
async fn commit(
    store: Arc<dyn Store>,
    encoder: Encoder,
    content: Arc<Mutex<TransactionContent>>,
    previous: Option<OutcomeFuture>,
) -> Arc<TransactionOutcome> {
    let previous = match previous {
        Some(previous) => Some(previous.await),
        None => None,
    };
    let closed = content.lock().close(previous.as_deref(), &encoder);
    Arc::new(match closed {
        Ok(None) => TransactionOutcome::Abandoned,
        Err(status) => TransactionOutcome::Refused(status),
        Ok(Some(txn)) => match store.commit(vec![txn]).await.pop() {
            Some(Ok(committed)) => TransactionOutcome::Committed(committed),
            Some(Err(error)) => TransactionOutcome::Failed(error),
            None => TransactionOutcome::Failed(TxnError::Closed),
        },
    })
}

impl Member {
    /// Returns the result of the write; `None` if the write must be retried. `keys` are the keys of its objects and of the
    /// objects that it depends on.
    pub(super) async fn outcome(
        self,
        keys: &[Key],
    ) -> Option<Result<Result<Arc<Record>, TxnError>, Box<Status>>> {
        let outcome = self.outcome.clone().await;
        match &*outcome {
            TransactionOutcome::Committed(committed) => {
                let record = committed.records.get(self.first_operation).cloned().flatten();
                Some(Ok(record.ok_or(TxnError::Closed)))
            }
            TransactionOutcome::Refused(status) => Some(Err(status.clone())),
            TransactionOutcome::Abandoned => None,
            TransactionOutcome::Failed(
                error @ (TxnError::Exists { .. }
                | TxnError::Conflict { .. }
                | TxnError::NotFound { .. }
                | TxnError::Unreadable { .. }),
            ) => is_about_any(error, keys).then(|| Ok(Err(error.clone()))),
            TransactionOutcome::Failed(error) => Some(Ok(Err(error.clone()))),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut content = self.content.lock();
        if content.state == TransactionState::Open {
            content.state = TransactionState::Abandoned;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_of_a_transaction_is_an_error_of_each_write() {
        let transaction = async {
            assert!(std::hint::black_box(false), "on purpose");
            Arc::new(TransactionOutcome::Abandoned)
        };
        let first: OutcomeFuture = catch_panic(transaction).boxed().shared();
        let second = first.clone();
        for waiting in [first, second] {
            let outcome = waiting.await;
            assert!(matches!(&*outcome, TransactionOutcome::Failed(TxnError::InDoubt(_))));
        }
    }

    #[test]
    fn namespaces_without_writes_in_progress_are_removed() {
        let transactions = SharedTransactions::default();
        let namespace_count = || transactions.namespaces.lock().len();
        let (first, second, other) =
            (transactions.enter("a"), transactions.enter("a"), transactions.enter("b"));
        assert_eq!(namespace_count(), 2);
        drop((first, other));
        assert_eq!(namespace_count(), 1);
        drop(second);
        assert_eq!(namespace_count(), 0);
    }
}
