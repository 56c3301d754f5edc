//! A count of objects in the database, while it runs.

use super::slot::Slot;

/// Has the changes since its revision kept along with the count; they are forgotten if it does not end.
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

    /// The revision at which to count.
    pub(crate) fn revision(&self) -> i64 {
        self.revision
    }

    /// Ends with so many objects.
    pub(crate) fn end(self, total: i64) {
        self.slot.unheld.lock().counts.end(self.namespace, self.revision, total);
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.slot.unheld.lock().counts.abandon(self.namespace, self.revision);
    }
}
