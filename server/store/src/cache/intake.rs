//! A resource on its way into memory: what has been read of it counts as held, and ends where there is no room.

use std::sync::Arc;

use super::budget::Budget;
use crate::record::Record;
use crate::snapshot::Objects;
use crate::unreadable::Unreadable;

/// See the module. Dropped, nothing of it is held any more.
pub(crate) struct Intake {
    records: Vec<Arc<Record>>,
    pub(super) unreadable: Vec<Unreadable>,
    bytes: i64,
    /// What it counts for, and whether it ends when that is used up; none when it is read for a caller.
    budget: Option<(Arc<Budget>, bool)>,
}

impl Intake {
    pub(super) fn new(budget: Option<(Arc<Budget>, bool)>) -> Self {
        Self { records: Vec::new(), unreadable: Vec::new(), bytes: 0, budget }
    }

    /// Takes the next object; false when there is no room for it.
    #[must_use]
    pub(crate) fn take(&mut self, read: Result<Record, Unreadable>) -> bool {
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

    /// Those that cannot be read, for whoever knows more of them.
    pub(crate) fn unreadable_mut(&mut self) -> &mut Vec<Unreadable> {
        &mut self.unreadable
    }

    /// Whether it has met some that cannot be read.
    pub(crate) fn has_unreadable(&self) -> bool {
        !self.unreadable.is_empty()
    }

    /// What it weighs so far.
    pub(crate) fn bytes(&self) -> i64 {
        self.bytes
    }

    /// The objects, and what they weigh; they are held from now on.
    pub(super) fn finish(mut self) -> (Objects, i64) {
        // Pointers are sorted, where SQL's ORDER BY would sort the values, too.
        self.records.sort_by(|a, b| a.key.path().cmp(b.key.path()));
        let (records, unreadable) = (std::mem::take(&mut self.records), std::mem::take(&mut self.unreadable));
        (Objects::from_sorted(&records, unreadable), std::mem::take(&mut self.bytes))
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        if let Some((budget, _)) = &self.budget {
            budget.add(-self.bytes);
        }
    }
}

/// About what a record weighs whose stored value has so many bytes.
pub(crate) fn average_weight(stored: i64) -> i64 {
    const BESIDES: i64 = 256;
    stored.saturating_add(BESIDES)
}

/// What a record counts as.
pub(super) fn weight(record: &Record) -> i64 {
    i64::try_from(record.weight()).unwrap_or(i64::MAX)
}
