//! A transaction: what must hold, what changes, and how it ends. Validated by the writer, inside the SQL transaction.

use std::sync::Arc;

use crate::key::Key;
use crate::record::{Record, Value};

/// Operations that happen all or not at all. Validated in order: a later operation sees what an earlier one did.
///
/// Every writing operation gets a revision of its own, and those of one Txn follow one another without a stranger's between
/// them; in etcd all of them get one, and what several of them do to one object shows as the last alone. Caches and
/// subscriptions get a Txn whole.
#[derive(Clone, Debug, Default)]
pub struct Txn {
    /// At most [`Txn::MAX_OPERATIONS`].
    pub operations: Vec<Operation>,
}

/// One operation of a [`Txn`].
#[derive(Clone, Debug)]
pub struct Operation {
    /// Key of the object.
    pub key: Key,
    /// What must hold before.
    pub expect: Expect,
    /// What happens.
    pub change: Change,
}

/// What must hold of the object before the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It does not exist; else [`TxnError::Exists`].
    Absent,
    /// It exists at exactly this revision; else [`TxnError::Conflict`], or [`TxnError::NotFound`] when it does not exist.
    Revision(i64),
    /// It exists, at whatever revision; else [`TxnError::NotFound`].
    Exists,
    /// Nothing: a put creates or replaces, a delete of what does not exist does nothing and writes nothing.
    Any,
}

/// What an operation does.
#[derive(Clone, Debug)]
pub enum Change {
    /// Creates or replaces the object.
    Put(Value),
    /// Deletes the object; the value is its last state, which the tombstone keeps for watchers and exact reads.
    Delete(Value),
    /// Writes nothing: only the expectation counts.
    Check,
}

/// A Txn whose values are sealed already, where they are: in their callers' time, not in the writer's.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) txn: Txn,
    /// What the database gets, of each operation; empty when none is sealed.
    pub(crate) sealed: Vec<Option<Arc<[u8]>>>,
}

impl Prepared {
    /// Bytes of its values, as they are stored.
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

    /// A Txn of one operation.
    pub fn one(key: Key, expect: Expect, change: Change) -> Self {
        Self { operations: vec![Operation { key, expect, change }] }
    }

    /// Creates one object.
    pub fn create(key: Key, value: Value) -> Self {
        Self::one(key, Expect::Absent, Change::Put(value))
    }

    /// Replaces one object that is at this revision.
    pub fn update(key: Key, revision: i64, value: Value) -> Self {
        Self::one(key, Expect::Revision(revision), Change::Put(value))
    }

    /// Deletes one object that is at this revision; `last` is its last state.
    pub fn delete(key: Key, revision: i64, last: Value) -> Self {
        Self::one(key, Expect::Revision(revision), Change::Delete(last))
    }
}

/// A Txn that is durable and visible.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The revision of its last operation; the store's revision at that time when it wrote nothing.
    pub revision: i64,
    /// What each operation wrote, in their order: the new state, or the tombstone; None when it wrote nothing.
    pub records: Vec<Option<Arc<Record>>>,
}

impl Committed {
    /// What the first operation wrote: for a Txn of one operation, its record.
    pub fn record(&self) -> Option<&Arc<Record>> {
        self.records.first().and_then(Option::as_ref)
    }
}

/// Why a Txn wrote nothing. Other Txns of the same call or group are not concerned, but by the last five.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TxnError {
    /// [`Expect::Revision`] named another revision than `current`'s.
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
    /// [`Expect::Absent`], and the object exists.
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
    /// The answer was lost with the database connection: the write may or may not be there.
    #[error("the outcome of the write is unknown: {0}")]
    Unknown(String),
    /// The store is closed or closing. Nothing was written.
    #[error("the store is closed")]
    Closed,
}
