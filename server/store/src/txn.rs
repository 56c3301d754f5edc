//! Transactions: preconditions, changes and results. The writer validates them within the SQL transaction.

use std::sync::Arc;

use crate::key::Key;
use crate::record::{Record, Value};

/// Operations that succeed or fail together. Validated in order: an operation sees the effects of the operations before it.
///
/// Each writing operation has its own revision, and the revisions of one Txn are consecutive. On etcd all operations share
/// one revision, and several operations on one object appear as the last of them only. Caches and subscriptions receive a Txn
/// as a whole.
#[derive(Clone, Debug, Default)]
pub struct Txn {
    /// Operations, at most [`Txn::MAX_OPERATIONS`].
    pub operations: Vec<Operation>,
}

/// One operation of a [`Txn`].
#[derive(Clone, Debug)]
pub struct Operation {
    /// Key of the object.
    pub key: Key,
    /// Precondition of the operation.
    pub precondition: Precondition,
    /// Change that the operation makes.
    pub change: Change,
}

/// Precondition of an operation on its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The object does not exist; otherwise [`TxnError::Exists`].
    Absent,
    /// The object exists at exactly this revision; otherwise [`TxnError::Conflict`], or [`TxnError::NotFound`] if
    /// it does not exist.
    Revision(i64),
    /// The object exists, at any revision; otherwise [`TxnError::NotFound`].
    Exists,
    /// No precondition: a put creates or replaces; a delete of a missing object writes nothing.
    Any,
}

/// Change of one object.
#[derive(Clone, Debug)]
pub enum Change {
    /// Creates or replaces the object.
    Put(Value),
    /// Deletes the object; the value is its last state, which the tombstone keeps for watchers and exact reads.
    Delete(Value),
    /// Writes nothing; only the precondition is checked.
    Check,
}

/// A Txn with its sealed values. Values are sealed in the tasks of the callers, not in the writer.
#[derive(Clone)]
pub(crate) struct PreparedTxn {
    pub(crate) txn: Txn,
    /// Sealed value of each operation for the database, `None` if it is stored plain; empty if no value is sealed.
    pub(crate) sealed_values: Vec<Option<Arc<[u8]>>>,
}

impl PreparedTxn {
    /// Returns the size of its values as stored, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |operation: &Operation| match &operation.change {
            Change::Put(value) | Change::Delete(value) => value.stored_bytes(),
            Change::Check => 0,
        };
        self.txn.operations.iter().map(bytes).sum()
    }
}

impl Txn {
    /// Operations of one transaction.
    ///
    /// Limit (Storage and watches): the transaction is rejected.
    pub const MAX_OPERATIONS: usize = 1_000;
    /// Operations of a transaction that combines writes of several callers.
    ///
    /// Every store supports as many: etcd accepts 128 by default.
    ///
    /// Limit (Admission and quota): further writes go into the next transaction.
    pub const SHARED_OPERATIONS: usize = 120;
    /// Bytes in one transaction with the quotas that count them.
    ///
    /// Every store supports this size: etcd accepts 1.5 MiB.
    ///
    /// Limit (Admission and quota, bytes): further writes go into the next transaction.
    pub const SHARED_BYTES: usize = 1 << 20;
    /// Size of one stored object as JSON.
    ///
    /// Limit (Storage and watches, bytes): the write is rejected.
    pub const MAX_VALUE_BYTES: usize = 3 << 20;

    /// Returns a Txn with one operation.
    pub fn single(key: Key, precondition: Precondition, change: Change) -> Self {
        Self { operations: vec![Operation { key, precondition, change }] }
    }

    /// Returns a Txn that creates one object.
    pub fn create(key: Key, value: Value) -> Self {
        Self::single(key, Precondition::Absent, Change::Put(value))
    }

    /// Returns a Txn that replaces one object at this revision.
    pub fn update(key: Key, revision: i64, value: Value) -> Self {
        Self::single(key, Precondition::Revision(revision), Change::Put(value))
    }

    /// Returns a Txn that deletes one object at this revision; `last` is its last state.
    pub fn delete(key: Key, revision: i64, last: Value) -> Self {
        Self::single(key, Precondition::Revision(revision), Change::Delete(last))
    }
}

/// Result of a Txn that is durable and visible.
#[derive(Clone, Debug)]
pub struct CommittedTxn {
    /// Revision of the last operation; the revision of the store at that time if nothing was written.
    pub revision: i64,
    /// Record that each operation wrote, in order: the new state or the tombstone; `None` if the operation wrote nothing.
    pub records: Vec<Option<Arc<Record>>>,
}

impl CommittedTxn {
    /// Returns the record that the first operation wrote.
    pub fn record(&self) -> Option<&Arc<Record>> {
        self.records.first().and_then(Option::as_ref)
    }
}

/// Reason why a Txn wrote nothing. The last five variants also affect other Txns of the same call or group.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TxnError {
    /// Revision in [`Precondition::Revision`] differs from the revision of `current`.
    #[error("{key} is at revision {}", current.revision)]
    Conflict {
        /// Key of the object.
        key: Key,
        /// Current state of the object.
        current: Arc<Record>,
    },
    /// The object does not exist.
    #[error("{key} does not exist")]
    NotFound {
        /// Key of the object.
        key: Key,
    },
    /// The object exists, contrary to [`Precondition::Absent`].
    #[error("{key} already exists")]
    Exists {
        /// Key of the object.
        key: Key,
        /// Current state of the object.
        current: Arc<Record>,
    },
    /// The object exists, but its stored bytes cannot be read. Such an object can only be deleted.
    #[error("{key} cannot be read from the storage")]
    Unreadable {
        /// Key of the object.
        key: Key,
    },
    /// A value cannot be encrypted.
    #[error("{0}")]
    Sealed(String),
    /// A value is larger than [`Txn::MAX_VALUE_BYTES`], or the transaction has too many operations.
    #[error("the request is too large: {0}")]
    TooLarge(String),
    /// The store refuses writes for the given reason. Nothing was written.
    #[error("the store is read-only: {0}")]
    ReadOnly(String),
    /// The disk, or the database's size limit, is full. Nothing was written; a later write may succeed.
    #[error("the database or its disk is full: {0}")]
    Full(String),
    /// The database refused the group of writes for another reason. Nothing was written.
    #[error("the database failed: {0}")]
    Unavailable(String),
    /// The database connection failed before the result arrived: the write may have been committed.
    #[error("the outcome of the write is unknown: {0}")]
    InDoubt(String),
    /// The store is closed or closing. Nothing was written.
    #[error("the store is closed")]
    Closed,
}
