//! The archive of past states as it travels: in blocks of a backup, and in answers of a control service.
//!
//! It is read in parts, in the order in which states were superseded. A state that moves from the log into the archive meanwhile keeps
//! its place in that order, so each is met once. What is complete is asked twice: before the first part and with the last one.

mod wire;

use std::collections::BTreeMap;

use crate::key::{Key, Resource};

/// A past state, as it stands in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedState {
    /// Which object.
    pub key: Key,
    /// The revision that wrote it.
    pub revision: i64,
    /// The revision that it superseded, 0 for a creation.
    pub previous: i64,
    /// Whether it is a tombstone.
    pub deleted: bool,
    /// The revision that superseded it; of a tombstone its own.
    pub until: i64,
    /// The value's format byte and its bytes, sealed if they are in the database.
    pub value: Vec<u8>,
}

/// Where the revision stood at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeMark {
    /// The revision.
    pub revision: i64,
    /// In Unix seconds.
    pub at: i64,
}

/// Revisions that are nobody's: the store was restored from what it was at `after`, and went on at `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The last one of before.
    pub after: i64,
    /// The first one of the new epoch.
    pub until: i64,
}

/// What an archive has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// From which revision on it has all states of a resource.
    pub since: BTreeMap<Resource, i64>,
    /// Revisions that are nobody's.
    pub lost: Vec<Lost>,
}

impl Kept {
    /// Whether there is no archive.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.since.is_empty()
    }

    /// What a copy is complete of that began when this was kept, and ended when `end` was: the log of a resource that came in between
    /// may have been passed by.
    #[must_use]
    pub(crate) fn until_the_end(&self, mut end: Self) -> Self {
        end.since.retain(|resource, _| self.since.contains_key(resource));
        end
    }
}

/// A part of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchivePart {
    /// In the order of `until`, then of `revision`.
    pub states: Vec<ArchivedState>,
    /// In the order of revisions.
    pub marks: Vec<TimeMark>,
    /// What there is; in the last part alone.
    pub kept: Option<Kept>,
}

/// Behind which states and marks an archive is read on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveAt {
    /// The `until` of the last state.
    pub until: i64,
    /// Its revision.
    pub revision: i64,
    /// The revision of the last mark.
    pub mark: i64,
}

impl ArchiveAt {
    /// Behind everything: what is read there is [`ArchivePart::kept`].
    pub const END: Self = Self { until: i64::MAX, revision: i64::MAX, mark: i64::MAX };

    /// Behind all states, and a mark.
    pub(crate) fn marks_behind(mark: i64) -> Self {
        Self { mark, ..Self::END }
    }

    /// Goes behind a part; what in it cannot follow, if something cannot.
    pub(crate) fn pass(&mut self, part: &ArchivePart, revision: i64) -> Result<(), String> {
        for state in &part.states {
            let place = (state.until, state.revision);
            if place <= (self.until, self.revision) || state.until > revision {
                return Err(format!("past state {}@{} is out of order", state.key, state.revision));
            }
            (self.until, self.revision) = place;
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
