//! Interfaces of an engine for copies: source, target, and the switch that stops writes between them.

use futures::future::BoxFuture;

use super::archive::{ArchiveContents, ArchiveCursor, ArchivePart};
use super::error::CopyError;
use super::state::StoredState;
use super::store_extent::StoreExtent;
use crate::key::Key;

/// Size of values in bytes after which a page of states ends; a page has at least one state.
pub(crate) const PAGE_BYTES: i64 = 1 << 20;
/// Maximum number of states in a page.
pub(crate) const PAGE_STATES: usize = 1_000;
/// Maximum number of time marks in a page; each has a few bytes.
pub(crate) const PAGE_MARKS: i64 = 10_000;

/// Returns the number of states with these sizes that fit into a page.
pub(crate) fn page_length(sizes: &[i64]) -> i64 {
    let mut bytes = 0;
    let fitting = sizes.iter().take_while(|size| {
        bytes += **size;
        bytes <= PAGE_BYTES
    });
    i64::try_from(fitting.count().max(1)).unwrap_or(i64::MAX)
}

/// Returns the last revision of a page of the log, from the revisions and sizes of its next rows ([`PAGE_STATES`] at most). If
/// all rows fit, the page ends at the current revision.
pub(crate) fn page_end(rows: &[(i64, i64)], current: i64) -> i64 {
    let sizes: Vec<i64> = rows.iter().map(|(_, size)| *size).collect();
    let length = usize::try_from(page_length(&sizes)).unwrap_or(usize::MAX);
    let is_all = length >= rows.len() && rows.len() < PAGE_STATES;
    let last = rows.get(length.saturating_sub(1)).filter(|_| !is_all);
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
    fn extent(&self) -> BoxFuture<'_, Result<StoreExtent, CopyError>>;

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
    fn archive(
        &self,
        _revision: i64,
        _after: ArchiveCursor,
    ) -> BoxFuture<'_, Result<ArchivePart, CopyError>> {
        let none = ArchivePart { contents: Some(ArchiveContents::default()), ..ArchivePart::default() };
        Box::pin(std::future::ready(Ok(none)))
    }

    /// Returns the maximum number of revisions by which the head may still advance after writes are stopped, through
    /// transactions that write no objects. A copy that preserves revisions continues above it.
    fn max_revision_drift(&self) -> i64 {
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
pub struct FinishedCopy {
    /// Identity and head of the new store.
    pub extent: StoreExtent,
    /// Location of the replaced store, if it was saved.
    pub saved_to: Option<String>,
}

/// Target of a copy. Its content becomes visible with [`CopyTarget::finish`]; if it is dropped before, nothing remains. A
/// target that assigns revisions cannot provide this: its content exists, with a marker that prevents it from being served.
pub trait CopyTarget: Send {
    /// Returns the store that would be replaced, with its highest known revision; `None` if it has no objects.
    fn existing(&self) -> Option<&StoreExtent>;

    /// True if the existing store is the same store with commits that the source lacks, even if the
    /// source advances by `max_drift`.
    fn is_newer_than(&self, source: &StoreExtent, max_drift: i64) -> bool {
        let last = source.revision.saturating_add(max_drift);
        self.existing().is_some_and(|existing| {
            existing.identity.store_id == source.identity.store_id
                && (existing.identity.epoch, existing.revision) > (source.identity.epoch, last)
        })
    }

    /// True if the existing store may be replaced although it is newer than the source.
    fn allows_data_loss(&self) -> bool {
        true
    }

    /// True if the database assigns the revisions itself: the copy then begins a new epoch.
    fn assigns_revisions(&self) -> bool {
        false
    }

    /// Adds states of objects that it does not contain yet.
    fn add(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>>;

    /// Adds states that follow those that it contains, in revision order. The owners are used only for the last
    /// state of an object.
    fn follow(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>>;

    /// True if the target has an archive of past states.
    fn has_archive(&self) -> bool {
        false
    }

    /// Adds a part of an archive, if the target has one. [`ArchivePart::contents`] comes last; states of resources not
    /// in it are deleted.
    fn archive(&mut self, _part: ArchivePart) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Makes the added states the only content of the store. A target that assigns revisions begins at the revision of
    /// `new_extent` or a higher one, and returns it.
    fn finish(
        self: Box<Self>,
        new_extent: StoreExtent,
    ) -> BoxFuture<'static, Result<FinishedCopy, CopyError>>;
}
