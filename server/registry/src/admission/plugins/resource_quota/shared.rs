//! Writes that are counted by the quotas of one namespace share transactions: while one is being committed, the writes
//! that arrive meanwhile gather in the next, which updates each quota once for all of them.
//!
//! Each write is admitted against the usage that those before it leave, committed or not. A transaction that fails over
//! one of its writes fails as a whole: that write gets the error, the others are tried again. Nothing is spawned: whoever
//! waits for a transaction drives it, so that no writer depends on another one staying.

mod content;

use std::collections::HashMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use portico_machinery::{Object, Status};
use portico_store::{Change, Committed, Expect, Key, Operation, Record, Snapshot, Store, TxnError};

use crate::pod_spec::totals::Amounts;
use crate::preconditions::is_about;
use crate::stored;
pub(super) use content::Encoder;
use content::{Content, State};

/// How many namespaces are remembered before those that rest are forgotten.
const MAX_NAMESPACES: usize = 1024;

/// The transactions of all namespaces with quotas.
#[derive(Default)]
pub(crate) struct SharedTransactions {
    namespaces: Mutex<HashMap<Box<str>, Arc<Mutex<Queue>>>>,
}

/// Of one namespace.
#[derive(Default)]
struct Queue {
    /// The newest transaction.
    newest: Option<Arc<Transaction>>,
}

/// One transaction.
struct Transaction {
    content: Arc<Mutex<Content>>,
    outcome: Waiting,
}

/// The end of a transaction; polling it drives the transaction.
pub(super) type Waiting = Shared<BoxFuture<'static, Arc<Outcome>>>;

/// How a transaction has ended.
pub(super) enum Outcome {
    Committed(Committed),
    Failed(TxnError),
    /// A quota could not be encoded.
    Refused(Box<Status>),
    /// It was never tried: the one before has failed, or one of its writers has gone away.
    Abandoned,
}

/// A write that asks to be counted.
pub(super) struct Counting<'a> {
    pub(super) store: &'a Arc<dyn Store>,
    pub(super) namespace: &'a str,
    pub(super) operations: &'a [Operation],
    pub(super) checks: &'a [Operation],
    pub(super) encoder: Encoder,
}

/// What becomes of a write that asks to be counted.
pub(super) enum Joined {
    /// It takes nothing of any quota.
    Uncounted,
    /// It would fail: an object is not as expected.
    Lost(TxnError),
    /// It has to wait for this end, and to ask again.
    Later(Waiting),
    /// It is part of a transaction.
    Member(Member),
}

/// A write in a transaction; dropped before the transaction is closed, it makes the others ask again.
pub(super) struct Member {
    content: Arc<Mutex<Content>>,
    outcome: Waiting,
    /// Where the operations of the write begin.
    first: usize,
}

impl SharedTransactions {
    /// Joins the open transaction of a namespace or begins the next. `taken` is what the write takes of each quota.
    ///
    /// # Errors
    /// What `taken` says when the write does not fit in what is stored.
    pub(super) fn join<E>(
        &self,
        write: &Counting<'_>,
        taken: impl Fn(&[&Object]) -> Result<Vec<Amounts>, E>,
    ) -> Result<Joined, E> {
        let queue = self.queue(write.namespace);
        let mut queue = queue.lock();
        if let Some(error) = write.unexpected() {
            return Ok(Joined::Lost(error));
        }
        let newest = queue.newest.clone().filter(|newest| newest.outcome.peek().is_none());
        let Some(newest) = newest else {
            let begun = Content::of_stored(&write.quotas());
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
            State::Open => match content.take(&taken) {
                Ok(false) => Ok(Joined::Uncounted),
                Ok(true) => Ok(Joined::Member(newest.add(&mut content, write))),
                // What is not committed yet refuses nobody.
                Err(_) => write.fits_what_is_stored(&taken).and_then(|()| later()),
            },
            State::Closed if !content.begins_with(&write.quotas()) => later(),
            State::Closed => {
                let next = content.next();
                let previous = newest.outcome.clone();
                drop(content);
                match queue.begin(write, next, Some(previous), &taken) {
                    Err(_) => write.fits_what_is_stored(&taken).and_then(|()| later()),
                    begun => begun,
                }
            }
        }
    }

    fn queue(&self, namespace: &str) -> Arc<Mutex<Queue>> {
        let mut namespaces = self.namespaces.lock();
        if let Some(queue) = namespaces.get(namespace) {
            return Arc::clone(queue);
        }
        if namespaces.len() >= MAX_NAMESPACES {
            namespaces.retain(|_, queue| Arc::strong_count(queue) > 1 || !queue.lock().rests());
        }
        Arc::clone(namespaces.entry(namespace.into()).or_default())
    }
}

impl Queue {
    fn rests(&self) -> bool {
        self.newest.as_ref().is_none_or(|newest| newest.outcome.peek().is_some())
    }

    fn begin<E>(
        &mut self,
        write: &Counting<'_>,
        mut content: Content,
        previous: Option<Waiting>,
        taken: &impl Fn(&[&Object]) -> Result<Vec<Amounts>, E>,
    ) -> Result<Joined, E> {
        if !content.take(taken)? {
            return Ok(Joined::Uncounted);
        }
        let content = Arc::new(Mutex::new(content));
        let (store, encoder) = (Arc::clone(write.store), write.encoder.clone());
        let outcome = commit(store, encoder, Arc::clone(&content), previous).boxed().shared();
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

/// Waits for the transaction before, closes this one and commits it.
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

impl Counting<'_> {
    /// The quotas of the namespace, as they are stored now.
    fn quotas(&self) -> Vec<Arc<Record>> {
        let snapshot = self.store.cached(&self.encoder.kind.storage);
        snapshot.map_or_else(Vec::new, |quotas| quotas.range(Some(self.namespace), None).cloned().collect())
    }

    fn bytes(&self) -> usize {
        let weight = |operation: &Operation| match &operation.change {
            Change::Put(value) | Change::Delete(value) => value.json().len(),
            Change::Check => 0,
        };
        self.operations.iter().map(weight).sum()
    }

    /// How the write would fail by itself, as far as that can be known: it must not fail others with it.
    fn unexpected(&self) -> Option<TxnError> {
        self.operations.iter().chain(self.checks).find_map(|operation| {
            let snapshot: Snapshot = self.store.cached(operation.key.resource())?;
            let (key, current) = (operation.key.clone(), snapshot.get(&operation.key).cloned());
            if snapshot.unreadable(operation.key.path()).is_some() {
                return Some(TxnError::Unreadable { key });
            }
            match (operation.expect, current) {
                (Expect::Absent, Some(current)) => Some(TxnError::Exists { key, current }),
                (Expect::Revision(_) | Expect::Exists, None) => Some(TxnError::NotFound { key }),
                (Expect::Revision(revision), Some(current)) if current.revision != revision => {
                    Some(TxnError::Conflict { key, current })
                }
                _ => None,
            }
        })
    }

    fn fits_what_is_stored<E>(
        &self,
        taken: &impl Fn(&[&Object]) -> Result<Vec<Amounts>, E>,
    ) -> Result<(), E> {
        let quotas: Vec<Object> = self.quotas().iter().map(|record| stored::decode(record)).collect();
        taken(&quotas.iter().collect::<Vec<_>>()).map(drop)
    }
}

impl Member {
    /// What became of the write; nothing when it has to be tried again. `keys` are what it is about, and what it relies on.
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
