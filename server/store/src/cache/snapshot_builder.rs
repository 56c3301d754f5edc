//! Builder of the cached objects of a resource. Objects count against the budget while they are read, and a load ends if they
//! do not fit.

use std::sync::Arc;

use super::budget::Budget;
use crate::record::Record;
use crate::snapshot::Objects;
use crate::unreadable::Unreadable;

/// Builder of the objects of a resource. When it is dropped, it returns its bytes to the budget.
pub(crate) struct SnapshotBuilder {
    records: Vec<Arc<Record>>,
    pub(super) unreadable: Vec<Unreadable>,
    bytes: i64,
    /// Budget, and true if the load must stay within it; `None` for a read for one caller.
    budget: Option<(Arc<Budget>, bool)>,
}

impl SnapshotBuilder {
    pub(super) fn new(budget: Option<(Arc<Budget>, bool)>) -> Self {
        Self { records: Vec::new(), unreadable: Vec::new(), bytes: 0, budget }
    }

    /// Adds the next object. Returns false if it does not fit.
    #[must_use]
    pub(crate) fn push(&mut self, read: Result<Record, Unreadable>) -> bool {
        let record = match read {
            Ok(record) => record,
            Err(object) => {
                self.unreadable.push(object);
                return true;
            }
        };
        if let Some((budget, ends)) = &self.budget {
            let bytes = weight(&record);
            self.bytes += bytes;
            budget.add(bytes);
            if *ends && budget.is_over() {
                return false;
            }
        }
        self.records.push(Arc::new(record));
        true
    }

    /// Returns the unreadable objects, for engines that have more information about them.
    pub(crate) fn unreadable_mut(&mut self) -> &mut Vec<Unreadable> {
        &mut self.unreadable
    }

    /// True if any object is unreadable.
    pub(crate) fn has_unreadable(&self) -> bool {
        !self.unreadable.is_empty()
    }

    /// Returns the weight of the objects so far in bytes.
    pub(crate) fn bytes(&self) -> i64 {
        self.bytes
    }

    /// Returns the objects and their weight in bytes, which stays counted against the budget.
    pub(super) fn finish(mut self) -> (Objects, i64) {
        // Sorts pointers; SQL's ORDER BY would sort the values as well.
        self.records.sort_by(|a, b| a.key.path().cmp(b.key.path()));
        let (records, unreadable) = (std::mem::take(&mut self.records), std::mem::take(&mut self.unreadable));
        (Objects::from_sorted(&records, unreadable), std::mem::take(&mut self.bytes))
    }
}

impl Drop for SnapshotBuilder {
    fn drop(&mut self) {
        if let Some((budget, _)) = &self.budget {
            budget.add(-self.bytes);
        }
    }
}

/// Returns the approximate weight of a record whose stored value has this size in bytes.
pub(crate) fn estimated_weight(stored: i64) -> i64 {
    const OVERHEAD: i64 = 256;
    stored.saturating_add(OVERHEAD)
}

/// Returns the weight of a record in bytes.
pub(super) fn weight(record: &Record) -> i64 {
    i64::try_from(record.weight()).unwrap_or(i64::MAX)
}
