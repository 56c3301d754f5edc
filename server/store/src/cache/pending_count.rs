//! Guard of a count of objects in the database.

use super::slot::Slot;

/// Guard of a running count, which records the changes since its revision. Dropped without an end, the changes are discarded.
pub(crate) struct PendingCount<'a> {
    slot: &'a Slot,
    namespace: &'a str,
    revision: i64,
}

impl<'a> PendingCount<'a> {
    pub(super) fn new(slot: &'a Slot, namespace: &'a str, revision: i64) -> Self {
        slot.uncached.lock().counts.begin(namespace, revision);
        Self { slot, namespace, revision }
    }

    /// Returns the revision at which to count.
    pub(crate) fn revision(&self) -> i64 {
        self.revision
    }

    /// Completes the count with this number of objects.
    pub(crate) fn complete(self, total: i64) {
        self.slot.uncached.lock().counts.complete(self.namespace, self.revision, total);
    }
}

impl Drop for PendingCount<'_> {
    fn drop(&mut self) {
        self.slot.uncached.lock().counts.abandon(self.namespace, self.revision);
    }
}
