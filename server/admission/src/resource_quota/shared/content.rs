//! Content of a shared transaction: the operations of its writes, and the updated quotas.

use std::collections::HashSet;
use std::sync::Arc;

use portico_machinery::{Object, Status};
use portico_store::{Change, Key, Operation, Precondition, Record, Txn};

use super::counted_write::CountedWrite;
use super::encoder::Encoder;
use super::outcome::TransactionOutcome;
use crate::resource_quota::usage::add_usage;
use portico_quota::ResourceList;
use portico_registry::stored_object;

/// Writes in one transaction with the quotas that count them.
///
/// Limit (Admission and quota): further writes go into the next transaction.
const MAX_WRITES: usize = 64;
/// Maximum number of operations of the writes of a transaction; further writes go into the next one. This leaves room for the
/// updates of their quotas.
const MAX_OPERATIONS: usize = Txn::SHARED_OPERATIONS * 3 / 4;

/// Progress of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TransactionState {
    /// Accepts further writes.
    Open,
    /// Committed, or being committed.
    Closed,
    /// Never committed; its writers join another transaction.
    Abandoned,
}

/// Content of a transaction.
pub(super) struct TransactionContent {
    pub(super) state: TransactionState,
    pub(super) writes: usize,
    pub(super) bytes: usize,
    pub(super) operations: Vec<Operation>,
    /// Keys of the objects that are written.
    pub(super) keys: HashSet<Key>,
    quotas: Vec<QuotaState>,
}

/// Quota with the usage after all writes of the transaction.
struct QuotaState {
    key: Key,
    base: QuotaBase,
    before: Object,
    after: Object,
    is_changed: bool,
}

/// Result of adding a write to a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CountResult {
    /// The write takes nothing from any quota.
    Uncounted,
    /// The quotas count the write.
    Counted,
    /// The operations of all writes, together with the changed quotas, exceed the limit of the store for a shared transaction.
    TooMany,
}

/// Revision of a quota from which a transaction starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QuotaBase {
    At(i64),
    /// Revision written by the operation with this index in the previous transaction.
    After(usize),
}

impl TransactionContent {
    fn new(quotas: Vec<QuotaState>) -> Self {
        let (operations, keys) = (Vec::new(), HashSet::new());
        Self { state: TransactionState::Open, writes: 0, bytes: 0, operations, keys, quotas }
    }

    pub(super) fn from_stored(quotas: &[Arc<Record>]) -> Self {
        let states = quotas.iter().map(|record| {
            let before = stored_object::decode(record);
            let (key, base, after) = (record.key.clone(), QuotaBase::At(record.revision), before.clone());
            QuotaState { key, base, before, after, is_changed: false }
        });
        Self::new(states.collect())
    }

    /// Creates the content of the next transaction, which starts from the quotas after this closed one.
    pub(super) fn next(&self) -> Self {
        let mut position = self.operations.len();
        let states = self.quotas.iter().map(|quota| {
            let base = if quota.is_changed { QuotaBase::After(position) } else { quota.base };
            position += usize::from(quota.is_changed);
            let (before, after) = (quota.after.clone(), quota.after.clone());
            QuotaState { key: quota.key.clone(), base, before, after, is_changed: false }
        });
        Self::new(states.collect())
    }

    pub(super) fn is_full(&self, write: &CountedWrite<'_>) -> bool {
        let operations = self.operations.len() + write.operations.len() + write.checks.len();
        self.writes >= MAX_WRITES
            || operations > MAX_OPERATIONS
            || self.bytes + write.bytes() > Txn::SHARED_BYTES
    }

    /// True if this closed transaction started from exactly these quotas.
    pub(super) fn starts_from(&self, quotas: &[Arc<Record>]) -> bool {
        let is_same = |(state, record): (&QuotaState, &Arc<Record>)| {
            state.key == record.key && state.base == QuotaBase::At(record.revision)
        };
        self.quotas.len() == quotas.len() && self.quotas.iter().zip(quotas).all(is_same)
    }

    /// Counts a write in all matching quotas, or in none. The first write of a transaction is accepted even if it is too large,
    /// because it cannot be moved to a smaller one.
    pub(super) fn count_write<E>(
        &mut self,
        write: &CountedWrite<'_>,
        amounts_taken: &impl Fn(&[&Object]) -> Result<Vec<ResourceList>, E>,
    ) -> Result<CountResult, E> {
        let quotas: Vec<&Object> = self.quotas.iter().map(|quota| &quota.after).collect();
        let amounts = amounts_taken(&quotas)?;
        if amounts.iter().all(ResourceList::is_empty) {
            return Ok(CountResult::Uncounted);
        }
        let changed =
            |(quota, amounts): &(&QuotaState, &ResourceList)| quota.is_changed || !amounts.is_empty();
        let quotas = self.quotas.iter().zip(&amounts).filter(changed).count();
        let operations = self.operations.len() + write.operations.len() + write.checks.len() + quotas;
        if self.writes > 0 && operations > Txn::SHARED_OPERATIONS {
            return Ok(CountResult::TooMany);
        }
        let affected = self.quotas.iter_mut().zip(amounts).filter(|(_, amounts)| !amounts.is_empty());
        for (quota, amounts) in affected {
            add_usage(&mut quota.after, &amounts);
            quota.is_changed = true;
        }
        Ok(CountResult::Counted)
    }

    /// Closes the transaction for further writes and returns it; `None` if it was abandoned.
    pub(super) fn close(
        &mut self,
        previous: Option<&TransactionOutcome>,
        encoder: &Encoder,
    ) -> Result<Option<Txn>, Box<Status>> {
        if self.state != TransactionState::Open {
            return Ok(None);
        }
        self.state = TransactionState::Closed;
        for quota in &mut self.quotas {
            let QuotaBase::After(position) = quota.base else { continue };
            let Some(revision) = revision_of(previous, position) else {
                self.state = TransactionState::Abandoned;
                return Ok(None);
            };
            quota.base = QuotaBase::At(revision);
        }
        if previous.is_some_and(|previous| !matches!(previous, TransactionOutcome::Committed(_))) {
            self.state = TransactionState::Abandoned;
            return Ok(None);
        }
        let mut operations = self.operations.clone();
        for quota in self.quotas.iter_mut().filter(|quota| quota.is_changed) {
            let QuotaBase::At(revision) = quota.base else { continue };
            let value = encoder.encode(&quota.before, &mut quota.after)?;
            let (key, precondition) = (quota.key.clone(), Precondition::Revision(revision));
            operations.push(Operation { key, precondition, change: Change::Put(value) });
        }
        Ok(Some(Txn { operations }))
    }
}

/// Returns the revision that an operation of a transaction has written.
fn revision_of(outcome: Option<&TransactionOutcome>, position: usize) -> Option<i64> {
    let Some(TransactionOutcome::Committed(committed)) = outcome else { return None };
    committed.records.get(position)?.as_ref().map(|record| record.revision)
}
