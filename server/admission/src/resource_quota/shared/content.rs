//! Content of a shared transaction: the operations of its writes, and the updated quotas.

use std::collections::HashSet;
use std::sync::Arc;

use portico_machinery::{Object, Status};
use portico_store::{Change, Expect, Key, Operation, Record, Txn};

use super::counting::Counting;
use super::encoder::Encoder;
use super::outcome::Outcome;
use crate::resource_quota::usage::count;
use portico_quota::Amounts;
use portico_registry::stored;

/// Writes in one transaction with the quotas that count them.
///
/// Limit (Admission and quota): further writes go into the next transaction.
const MAX_WRITES: usize = 64;
/// Maximum number of operations of the writes of a transaction; further writes go into the next one. This leaves room for the
/// updates of their quotas.
const MAX_OPERATIONS: usize = Txn::SHARED_OPERATIONS * 3 / 4;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Open,
    Closed,
    Abandoned,
}

/// Content of a transaction.
pub(super) struct Content {
    pub(super) state: State,
    pub(super) writes: usize,
    pub(super) bytes: usize,
    pub(super) operations: Vec<Operation>,
    /// Keys of the objects that are written.
    pub(super) keys: HashSet<Key>,
    quotas: Vec<Counted>,
}

/// Quota with the usage after all writes of the transaction.
struct Counted {
    key: Key,
    base: Base,
    before: Object,
    after: Object,
    is_changed: bool,
}

/// Result of adding a write to a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// The write takes nothing from any quota.
    Nothing,
    /// The quotas count the write.
    Counted,
    /// The operations of all writes, together with the changed quotas, exceed the limit of the store for a shared transaction.
    TooMany,
}

/// Revision of a quota from which a transaction starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    At(i64),
    /// Revision written by the operation with this index in the previous transaction.
    After(usize),
}

impl Content {
    fn new(quotas: Vec<Counted>) -> Self {
        let (operations, keys) = (Vec::new(), HashSet::new());
        Self { state: State::Open, writes: 0, bytes: 0, operations, keys, quotas }
    }

    pub(super) fn of_stored(quotas: &[Arc<Record>]) -> Self {
        let counted = quotas.iter().map(|record| {
            let before = stored::decode(record);
            let (key, base, after) = (record.key.clone(), Base::At(record.revision), before.clone());
            Counted { key, base, before, after, is_changed: false }
        });
        Self::new(counted.collect())
    }

    /// Creates the content of the next transaction, which starts from the quotas after this closed one.
    pub(super) fn next(&self) -> Self {
        let mut position = self.operations.len();
        let counted = self.quotas.iter().map(|quota| {
            let base = if quota.is_changed { Base::After(position) } else { quota.base };
            position += usize::from(quota.is_changed);
            let (before, after) = (quota.after.clone(), quota.after.clone());
            Counted { key: quota.key.clone(), base, before, after, is_changed: false }
        });
        Self::new(counted.collect())
    }

    pub(super) fn is_full(&self, write: &Counting<'_>) -> bool {
        let operations = self.operations.len() + write.operations.len() + write.checks.len();
        self.writes >= MAX_WRITES
            || operations > MAX_OPERATIONS
            || self.bytes + write.bytes() > Txn::SHARED_BYTES
    }

    /// True if this closed transaction started from exactly these quotas.
    pub(super) fn begins_with(&self, quotas: &[Arc<Record>]) -> bool {
        let same = |(counted, record): (&Counted, &Arc<Record>)| {
            counted.key == record.key && counted.base == Base::At(record.revision)
        };
        self.quotas.len() == quotas.len() && self.quotas.iter().zip(quotas).all(same)
    }

    /// Counts a write in all matching quotas, or in none. The first write of a transaction is accepted even if it is too large,
    /// because it cannot be moved to a smaller one.
    pub(super) fn take<E>(
        &mut self,
        write: &Counting<'_>,
        taken: &impl Fn(&[&Object]) -> Result<Vec<Amounts>, E>,
    ) -> Result<Taken, E> {
        let quotas: Vec<&Object> = self.quotas.iter().map(|quota| &quota.after).collect();
        let amounts = taken(&quotas)?;
        if amounts.iter().all(Amounts::is_empty) {
            return Ok(Taken::Nothing);
        }
        let changed = |(quota, amounts): &(&Counted, &Amounts)| quota.is_changed || !amounts.is_empty();
        let quotas = self.quotas.iter().zip(&amounts).filter(changed).count();
        let operations = self.operations.len() + write.operations.len() + write.checks.len() + quotas;
        if self.writes > 0 && operations > Txn::SHARED_OPERATIONS {
            return Ok(Taken::TooMany);
        }
        let concerned = self.quotas.iter_mut().zip(amounts).filter(|(_, amounts)| !amounts.is_empty());
        for (quota, amounts) in concerned {
            count(&mut quota.after, &amounts);
            quota.is_changed = true;
        }
        Ok(Taken::Counted)
    }

    /// Closes the transaction for further writes and returns it; `None` if it was abandoned.
    pub(super) fn close(
        &mut self,
        previous: Option<&Outcome>,
        encoder: &Encoder,
    ) -> Result<Option<Txn>, Box<Status>> {
        if self.state != State::Open {
            return Ok(None);
        }
        self.state = State::Closed;
        for quota in &mut self.quotas {
            let Base::After(position) = quota.base else { continue };
            let Some(revision) = revision_of(previous, position) else {
                self.state = State::Abandoned;
                return Ok(None);
            };
            quota.base = Base::At(revision);
        }
        if previous.is_some_and(|previous| !matches!(previous, Outcome::Committed(_))) {
            self.state = State::Abandoned;
            return Ok(None);
        }
        let mut operations = self.operations.clone();
        for quota in self.quotas.iter_mut().filter(|quota| quota.is_changed) {
            let Base::At(revision) = quota.base else { continue };
            let value = encoder.encode(&quota.before, &mut quota.after)?;
            let (key, expect) = (quota.key.clone(), Expect::Revision(revision));
            operations.push(Operation { key, expect, change: Change::Put(value) });
        }
        Ok(Some(Txn { operations }))
    }
}

/// Returns the revision that an operation of a transaction has written.
fn revision_of(outcome: Option<&Outcome>, position: usize) -> Option<i64> {
    let Some(Outcome::Committed(committed)) = outcome else { return None };
    committed.records.get(position)?.as_ref().map(|record| record.revision)
}
