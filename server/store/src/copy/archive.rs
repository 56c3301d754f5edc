//! Archive of past states in transfer: in blocks of a backup, and in responses of a control service.
//!
//! The archive is read in parts, in the order in which states were superseded. A state that moves from the log to the archive
//! during the copy keeps its position in that order, so each state is read once. Completeness is read before the first part and
//! with the last one.

mod wire;

use std::collections::BTreeMap;

use crate::key::{Key, Resource};

/// Past state, as stored in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedState {
    /// Key of the object.
    pub key: Key,
    /// Revision that wrote the state.
    pub revision: i64,
    /// Revision that it superseded, 0 for a creation.
    pub previous: i64,
    /// True for a tombstone.
    pub deleted: bool,
    /// Revision that superseded the state; for a tombstone, its own revision.
    pub until: i64,
    /// Format byte and content of the value, sealed if it is sealed in the database.
    pub value: Vec<u8>,
}

/// Revision of the store at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeMark {
    /// Current revision at that time.
    pub revision: i64,
    /// Unix time in seconds.
    pub at: i64,
}

/// Unused revisions: the store was restored from its state at `after`, and continued at `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisionGap {
    /// Last revision before the gap.
    pub after: i64,
    /// First revision of the new epoch.
    pub until: i64,
}

/// Contents of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveContents {
    /// Revision of each resource from which all its states are archived.
    pub since: BTreeMap<Resource, i64>,
    /// Unused ranges of revisions.
    pub gaps: Vec<RevisionGap>,
}

impl ArchiveContents {
    /// True if there is no archive.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.since.is_empty()
    }

    /// Returns what a copy is complete of that started with these contents and ended with `end`. Resources that were added in
    /// between are dropped: the copy may have missed parts of their log.
    #[must_use]
    pub(crate) fn intersect(&self, mut end: Self) -> Self {
        end.since.retain(|resource, _| self.since.contains_key(resource));
        end
    }
}

/// Part of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchivePart {
    /// States, ordered by `until`, then by `revision`.
    pub states: Vec<ArchivedState>,
    /// Marks in revision order.
    pub marks: Vec<TimeMark>,
    /// Contents of the archive; only in the last part.
    pub contents: Option<ArchiveContents>,
}

/// Cursor in an archive: the last state and mark that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveCursor {
    /// `until` of the last state.
    pub until: i64,
    /// Revision of the last state.
    pub revision: i64,
    /// Revision of the last mark.
    pub mark: i64,
}

impl ArchiveCursor {
    /// Cursor after all states and marks, where [`ArchivePart::contents`] is read.
    pub const END: Self = Self { until: i64::MAX, revision: i64::MAX, mark: i64::MAX };

    /// Returns the cursor after all states and after a mark.
    pub(crate) fn after_mark(mark: i64) -> Self {
        Self { mark, ..Self::END }
    }

    /// Advances the cursor past a part. Returns the reason if an entry is out of order.
    pub(crate) fn advance(&mut self, part: &ArchivePart, revision: i64) -> Result<(), String> {
        for state in &part.states {
            let position = (state.until, state.revision);
            if position <= (self.until, self.revision) || state.until > revision {
                return Err(format!("past state {}@{} is out of order", state.key, state.revision));
            }
            (self.until, self.revision) = position;
        }
        for mark in &part.marks {
            if mark.revision <= self.mark || mark.revision > revision {
                return Err(format!("the time of revision {} is out of order", mark.revision));
            }
            self.mark = mark.revision;
        }
        Ok(())
    }
}
