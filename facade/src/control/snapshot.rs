//! A snapshot that is not active yet: it is incomplete, or older than the state that another control service has shown.

use std::collections::HashSet;

use portico_proto::convert::{Entry, Version};

use crate::configuration::Refusal;

/// Snapshot that is received and not active yet.
pub(super) struct PendingSnapshot {
    /// Version of the snapshot, including changes received after it.
    pub(super) version: Version,
    /// Entries, one per key.
    pub(super) entries: Vec<Entry>,
    pub(super) refused: Vec<Refusal>,
    complete: bool,
}

impl PendingSnapshot {
    /// Creates an empty snapshot.
    pub(super) fn new(version: Version) -> Self {
        Self { version, entries: Vec::new(), refused: Vec::new(), complete: false }
    }

    /// Adds a part of the snapshot, or, with a `version`, a later change.
    pub(super) fn add(&mut self, version: Option<Version>, entries: Vec<Entry>, refused: Vec<Refusal>) {
        if let Some(version) = version {
            self.version = version;
            let changed: HashSet<_> = entries.iter().map(|entry| (entry.kind, entry.key.as_str())).collect();
            self.entries.retain(|entry| !changed.contains(&(entry.kind, entry.key.as_str())));
        }
        self.entries.extend(entries.into_iter().filter(|entry| entry.payload.is_some()));
        self.refused.extend(refused);
    }

    /// Records that all parts have arrived.
    pub(super) fn mark_complete(&mut self) {
        self.complete = true;
        self.entries.shrink_to_fit();
    }

    /// True if all parts have arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// True if the snapshot is older than `active`, within the same epoch of the store.
    pub(super) fn is_older_than(&self, active: Option<&Version>) -> bool {
        active.is_some_and(|version| {
            (&version.store_id, &version.epoch) == (&self.version.store_id, &self.version.epoch)
                && version.revision > self.version.revision
        })
    }
}

#[cfg(test)]
mod tests {
    use portico_proto::convert::{Payload, PayloadKind};

    use super::*;

    fn version(epoch: &str, revision: i64) -> Version {
        Version { store_id: "s".to_owned(), epoch: epoch.to_owned(), revision }
    }

    fn setting(key: &str, text: Option<&str>) -> Entry {
        let payload = text.map(|text| Payload::Setting(text.into()));
        Entry { kind: PayloadKind::Setting, key: key.to_owned(), revision: 0, payload }
    }

    #[test]
    fn changes_are_merged_into_a_pending_snapshot() {
        let mut snapshot = PendingSnapshot::new(version("1", 7));
        snapshot.add(
            None,
            vec![setting("a", Some("1")), setting("b", Some("1")), setting("c", None)],
            Vec::new(),
        );
        snapshot.add(Some(version("1", 8)), vec![setting("a", Some("2")), setting("b", None)], Vec::new());
        assert_eq!(snapshot.version.revision, 8);
        assert_eq!(snapshot.entries, [setting("a", Some("2"))]);
    }

    #[test]
    fn a_pending_snapshot_is_older_until_changes_reach_the_active_revision() {
        let active = version("1", 9);
        let mut snapshot = PendingSnapshot::new(version("1", 7));
        assert!(snapshot.is_older_than(Some(&active)) && !snapshot.is_older_than(None));
        snapshot.add(Some(version("1", 9)), Vec::new(), Vec::new());
        assert!(!snapshot.is_older_than(Some(&active)));
        assert!(!PendingSnapshot::new(version("2", 1)).is_older_than(Some(&active)), "restored since");
    }
}
