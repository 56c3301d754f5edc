//! Guard of a count of objects in the database.

use super::slot::Slot;

/// Guard of a running count, which records the changes since its revision. Dropped without an end, the changes are discarded.
pub(crate) struct Counting<'a> {
    slot: &'a Slot,
    namespace: &'a str,
    revision: i64,
}

impl<'a> Counting<'a> {
    pub(super) fn new(slot: &'a Slot, namespace: &'a str, revision: i64) -> Self {
        slot.unheld.lock().counts.begin(namespace, revision);
        Self { slot, namespace, revision }
    }

    /// Returns the revision at which to count.
    pub(crate) fn revision(&self) -> i64 {
        self.revision
    }

    /// Completes the count with this number of objects.
    pub(crate) fn end(self, total: i64) {
        self.slot.unheld.lock().counts.end(self.namespace, self.revision, total);
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.slot.unheld.lock().counts.abandon(self.namespace, self.revision);
    }
}
