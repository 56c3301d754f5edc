//! Shared transactions: writes that the quotas of one namespace count. While one transaction is being committed, new writes
//! gather in the next one, which updates each quota once for all of them.
//!
//! Each write is admitted against the usage after all earlier writes, committed or not. If one write makes a transaction fail,
//! that write gets the error and the others are retried. No task is spawned: each writer that waits for a transaction polls it,
//! so no writer depends on another one.

mod content;
mod counting;
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

use content::{Content, State, Taken};
pub(super) use counting::Counting;
pub(super) use encoder::Encoder;
pub(super) use outcome::Outcome;
use portico_quota::Amounts;
use portico_registry::preconditions::is_about;

/// Transactions of all namespaces with counted writes in progress.
#[derive(Default)]
pub(crate) struct SharedTransactions {
    namespaces: Mutex<HashMap<Box<str>, Arc<Mutex<Queue>>>>,
    /// Set once the quotas are kept in memory, so that they can be read without waiting.
    pub(super) keeps_quotas: OnceLock<()>,
}

/// Guard for the transactions of one namespace, held while a write to the namespace is in progress.
pub(super) struct Turn<'a> {
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
    content: Arc<Mutex<Content>>,
    outcome: Waiting,
}

/// Future of the outcome of a transaction. Polling the future executes the transaction.
pub(super) type Waiting = Shared<BoxFuture<'static, Arc<Outcome>>>;

/// Result of joining a transaction.
pub(super) enum Joined {
    /// The write takes nothing from any quota.
    Uncounted,
    /// The write would fail, because an object is not in the expected state.
    Lost(TxnError),
    /// The write must wait for this outcome and join again.
    Later(Waiting),
    /// The write is part of a transaction.
    Member(Member),
}

/// Write in a transaction. If it is dropped before the transaction is closed, the other writes join again.
pub(super) struct Member {
    content: Arc<Mutex<Content>>,
    outcome: Waiting,
    /// Index of the first operation of the write.
    first: usize,
}

impl SharedTransactions {
    /// Returns the guard of a namespace, for one write.
    pub(super) fn of<'a>(&'a self, namespace: &'a str) -> Turn<'a> {
        let queue = Arc::clone(self.namespaces.lock().entry(namespace.into()).or_default());
        Turn { transactions: self, namespace, queue: Some(queue) }
    }
}

impl Drop for Turn<'_> {
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

impl Turn<'_> {
    /// Joins the open transaction of the namespace or begins the next one. `taken` returns the amounts that the write takes
    /// from each quota.
    ///
    /// # Errors
    /// The error of `taken` if the write does not fit in the stored quotas.
    pub(super) fn join<E>(
        &self,
        write: &Counting<'_>,
        taken: impl Fn(&[&Object]) -> Result<Vec<Amounts>, E>,
    ) -> Result<Joined, E> {
        let Some(queue) = &self.queue else { return Ok(Joined::Lost(TxnError::Closed)) };
        let mut queue = queue.lock();
        if let Some(error) = write.unexpected() {
            // Upstream checks quotas before it checks whether the object exists.
            if matches!(error, TxnError::Exists { .. }) {
                write.fits_what_is_stored(self.namespace, &taken)?;
            }
            return Ok(Joined::Lost(error));
        }
        let newest = queue.newest.clone().filter(|newest| newest.outcome.peek().is_none());
        let Some(newest) = newest else {
            let Some(quotas) = write.quotas(self.namespace) else {
                let why = "the quotas of the namespace cannot be read".to_owned();
                return Ok(Joined::Lost(TxnError::Unavailable(why)));
            };
            let begun = Content::of_stored(&quotas);
            return queue.begin(write, begun, None, &taken);
        };
        let mut content = newest.content.lock();
        let later = || Ok(Joined::Later(newest.outcome.clone()));
        if write.operations.iter().any(|operation| content.keys.contains(&operation.key)) {
            return later();
        }
        match content.state {
            State::Abandoned => later(),
            State::Open if content.is_full(write) => later(),
            State::Open => match content.take(write, &taken) {
                Ok(Taken::Nothing) => Ok(Joined::Uncounted),
                Ok(Taken::Counted) => Ok(Joined::Member(newest.add(&mut content, write))),
                Ok(Taken::TooMany) => later(),
                // Usage that is not committed yet must not cause a refusal.
                Err(_) => write.fits_what_is_stored(self.namespace, &taken).and_then(|()| later()),
            },
            State::Closed
                if !write.quotas(self.namespace).is_some_and(|quotas| content.begins_with(&quotas)) =>
            {
                later()
            }
            State::Closed => {
                let next = content.next();
                let previous = newest.outcome.clone();
                drop(content);
                match queue.begin(write, next, Some(previous), &taken) {
                    Err(_) => write.fits_what_is_stored(self.namespace, &taken).and_then(|()| later()),
                    begun => begun,
                }
            }
        }
    }
}

impl Queue {
    fn begin<E>(
        &mut self,
        write: &Counting<'_>,
        mut content: Content,
        previous: Option<Waiting>,
        taken: &impl Fn(&[&Object]) -> Result<Vec<Amounts>, E>,
    ) -> Result<Joined, E> {
        if content.take(write, taken)? == Taken::Nothing {
            return Ok(Joined::Uncounted);
        }
        let content = Arc::new(Mutex::new(content));
        let (store, encoder) = (Arc::clone(write.store), write.encoder.clone());
        let outcome = ended(commit(store, encoder, Arc::clone(&content), previous)).boxed().shared();
        let begun = Arc::new(Transaction { content, outcome });
        let member = begun.add(&mut begun.content.lock(), write);
        self.newest = Some(begun);
        Ok(Joined::Member(member))
    }
}

impl Transaction {
    fn add(&self, content: &mut Content, write: &Counting<'_>) -> Member {
        let first = content.operations.len();
        content.writes += 1;
        content.bytes += write.bytes();
        content.keys.extend(write.operations.iter().map(|operation| operation.key.clone()));
        content.operations.extend(write.operations.iter().chain(write.checks).cloned());
        Member { content: Arc::clone(&self.content), outcome: self.outcome.clone(), first }
    }
}

/// Returns the outcome of a transaction. A panic becomes an error, because every caller that polls a shared future after a panic
/// would panic as well.
async fn ended(transaction: impl Future<Output = Arc<Outcome>>) -> Arc<Outcome> {
    let ended = AssertUnwindSafe(transaction).catch_unwind().await;
    ended.unwrap_or_else(|_| {
        let why = "the quota transaction panicked";
        Arc::new(Outcome::Failed(TxnError::Unknown(why.to_owned())))
    })
}

/// Waits for the previous transaction, closes this one and commits it.
async fn commit(
    store: Arc<dyn Store>,
    encoder: Encoder,
    content: Arc<Mutex<Content>>,
    previous: Option<Waiting>,
) -> Arc<Outcome> {
    let previous = match previous {
        Some(previous) => Some(previous.await),
        None => None,
    };
    let closed = content.lock().close(previous.as_deref(), &encoder);
    Arc::new(match closed {
        Ok(None) => Outcome::Abandoned,
        Err(status) => Outcome::Refused(status),
        Ok(Some(txn)) => match store.commit(vec![txn]).await.pop() {
            Some(Ok(committed)) => Outcome::Committed(committed),
            Some(Err(error)) => Outcome::Failed(error),
            None => Outcome::Failed(TxnError::Closed),
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
            Outcome::Committed(committed) => {
                let record = committed.records.get(self.first).cloned().flatten();
                Some(Ok(record.ok_or(TxnError::Closed)))
            }
            Outcome::Refused(status) => Some(Err(status.clone())),
            Outcome::Abandoned => None,
            Outcome::Failed(
                error @ (TxnError::Exists { .. }
                | TxnError::Conflict { .. }
                | TxnError::NotFound { .. }
                | TxnError::Unreadable { .. }),
            ) => is_about(error, keys).then(|| Ok(Err(error.clone()))),
            Outcome::Failed(error) => Some(Ok(Err(error.clone()))),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut content = self.content.lock();
        if content.state == State::Open {
            content.state = State::Abandoned;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_transaction_that_panics_fails_for_each_of_its_writes_and_panics_in_none() {
        let transaction = async {
            assert!(std::hint::black_box(false), "on purpose");
            Arc::new(Outcome::Abandoned)
        };
        let first: Waiting = ended(transaction).boxed().shared();
        let second = first.clone();
        for waiting in [first, second] {
            let outcome = waiting.await;
            assert!(matches!(&*outcome, Outcome::Failed(TxnError::Unknown(_))));
        }
    }

    #[test]
    fn nothing_is_kept_of_a_namespace_in_which_no_write_is_under_way() {
        let transactions = SharedTransactions::default();
        let kept = || transactions.namespaces.lock().len();
        let (first, second, other) = (transactions.of("a"), transactions.of("a"), transactions.of("b"));
        assert_eq!(kept(), 2);
        drop((first, other));
        assert_eq!(kept(), 1);
        drop(second);
        assert_eq!(kept(), 0);
    }
}
