//! Interfaces of an engine for copies: source, target, and the switch that stops writes between them.

use futures::future::BoxFuture;

use super::archive::{ArchiveAt, ArchivePart, Kept};
use super::error::CopyError;
use super::extent::Extent;
use super::state::StoredState;
use crate::key::Key;

/// Size of values in bytes after which a page of states ends; a page has at least one state.
pub(crate) const PAGE_BYTES: i64 = 1 << 20;
/// Maximum number of states in a page.
pub(crate) const PAGE_STATES: usize = 1_000;
/// Maximum number of time marks in a page; each has a few bytes.
pub(crate) const PAGE_MARKS: i64 = 10_000;

/// Returns the number of states with these sizes that fit into a page.
pub(crate) fn page_of(sizes: &[i64]) -> i64 {
    let mut bytes = 0;
    let fits = sizes.iter().take_while(|size| {
        bytes += **size;
        bytes <= PAGE_BYTES
    });
    i64::try_from(fits.count().max(1)).unwrap_or(i64::MAX)
}

/// Returns the last revision of a page of the log, from the revisions and sizes of its next rows ([`PAGE_STATES`] at most). If
/// all rows fit, the page ends at the current revision.
pub(crate) fn part_of(rows: &[(i64, i64)], current: i64) -> i64 {
    let sizes: Vec<i64> = rows.iter().map(|(_, size)| *size).collect();
    let part = usize::try_from(page_of(&sizes)).unwrap_or(usize::MAX);
    let is_all = part >= rows.len() && rows.len() < PAGE_STATES;
    let last = rows.get(part.saturating_sub(1)).filter(|_| !is_all);
    last.map_or(current, |(revision, _)| *revision)
}

/// Part of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// States in revision order, including tombstones.
    pub states: Vec<StoredState>,
    /// Revision up to which the log has been returned.
    pub until: i64,
    /// Head of the log when it was read.
    pub revision: i64,
}

/// Source of a copy. Calls are independent of each other, so an interrupted caller can repeat them.
pub trait CopySource: Send + Sync {
    /// Returns the current identity and head of the store.
    fn extent(&self) -> BoxFuture<'_, Result<Extent, CopyError>>;

    /// Returns the next states of exactly a revision after a key, in key order; an empty page is the end.
    /// [`StoredState::owners`] is `None` if a value is sealed, was superseded since, and cannot be opened here.
    fn states<'a>(
        &'a self,
        revision: i64,
        after: Option<&'a Key>,
    ) -> BoxFuture<'a, Result<Vec<StoredState>, CopyError>>;

    /// Returns the states written after a revision. [`StoredState::owners`] may be `None` as in [`CopySource::states`].
    fn changes(&self, after: i64) -> BoxFuture<'_, Result<Changes, CopyError>>;

    /// Returns the revision at a time in Unix seconds; 0 if no record reaches that far back.
    fn revision_at(&self, time: i64) -> BoxFuture<'_, Result<i64, CopyError>>;

    /// Returns the next part, after a cursor, of the archived states that were superseded up to a revision.
    /// [`ArchivePart::contents`] is set in the last part.
    fn archive(&self, _revision: i64, _after: ArchiveAt) -> BoxFuture<'_, Result<ArchivePart, CopyError>> {
        let none = ArchivePart { kept: Some(Kept::default()), ..ArchivePart::default() };
        Box::pin(std::future::ready(Ok(none)))
    }

    /// Returns the maximum number of revisions by which the head may still advance after writes are stopped, through
    /// transactions that write no objects. A copy that preserves revisions continues above it.
    fn moves_on_by(&self) -> i64 {
        0
    }
}

/// Stops and resumes the writes of all processes to a store.
pub trait WriteSwitch: Send + Sync {
    /// Rejects writes with this reason after the returned revision (no later write is acknowledged), or accepts writes again if
    /// `reason` is `None`. Idempotent.
    fn set_read_only<'a>(&'a self, reason: Option<&'a str>) -> BoxFuture<'a, Result<i64, CopyError>>;
}

/// Result of a finished copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Identity and head of the new store.
    pub extent: Extent,
    /// Location of the replaced store, if it was saved.
    pub kept: Option<String>,
}

/// Target of a copy. Its content becomes visible with [`CopyTarget::finish`]; if it is dropped before, nothing remains. A
/// target that assigns revisions cannot provide this: its content exists, with a marker that prevents it from being served.
pub trait CopyTarget: Send {
    /// Returns the store that would be replaced, with its highest known revision; `None` if it has no objects.
    fn replaces(&self) -> Option<&Extent>;

    /// True if the existing store is the same store with commits that the source lacks, even if the
    /// source advances by `max_drift`.
    fn has_more_than(&self, source: &Extent, moves_on_by: i64) -> bool {
        let last = source.revision.saturating_add(moves_on_by);
        self.replaces().is_some_and(|there| {
            there.identity.store_id == source.identity.store_id
                && (there.identity.epoch, there.revision) > (source.identity.epoch, last)
        })
    }

    /// True if the existing store may be replaced although it is newer than the source.
    fn may_lose(&self) -> bool {
        true
    }

    /// True if the database assigns the revisions itself: the copy then begins a new epoch.
    fn numbers_by_itself(&self) -> bool {
        false
    }

    /// Adds states of objects that it does not contain yet.
    fn add(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>>;

    /// Adds states that follow those that it contains, in revision order. The owners are used only for the last
    /// state of an object.
    fn follow(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>>;

    /// True if the target has an archive of past states.
    fn keeps_archive(&self) -> bool {
        false
    }

    /// Adds a part of an archive, if the target has one. [`ArchivePart::contents`] comes last; states of resources not
    /// in it are deleted.
    fn archive(&mut self, _part: ArchivePart) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Makes the added states the only content of the store. A target that assigns revisions begins at the revision of
    /// `new_extent` or a higher one, and returns it.
    fn finish(self: Box<Self>, becomes: Extent) -> BoxFuture<'static, Result<Finished, CopyError>>;
}
