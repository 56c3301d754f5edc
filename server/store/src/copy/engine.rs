//! What an engine shows and takes: the two ends of every copy, and the switch that stops writes between them.

use futures::future::BoxFuture;

use super::archive::{ArchiveAt, ArchivePart, Kept};
use super::error::CopyError;
use super::extent::Extent;
use super::state::StoredState;
use crate::key::Key;

/// Bytes of values after which a page of states ends; it has one state at least.
pub(crate) const PAGE_BYTES: i64 = 1 << 20;
/// States of a page at most.
pub(crate) const PAGE_STATES: usize = 1_000;
/// Marks of the time of a page at most: some bytes each.
pub(crate) const PAGE_MARKS: i64 = 10_000;

/// How many states of these sizes make a page.
pub(crate) fn page_of(sizes: &[i64]) -> i64 {
    let mut bytes = 0;
    let fits = sizes.iter().take_while(|size| {
        bytes += **size;
        bytes <= PAGE_BYTES
    });
    i64::try_from(fits.count().max(1)).unwrap_or(i64::MAX)
}

/// Up to which revision a page of the log goes, by the revisions and sizes of its next rows ([`PAGE_STATES`] at most); with all
/// there are it goes up to the current one.
pub(crate) fn part_of(rows: &[(i64, i64)], current: i64) -> i64 {
    let sizes: Vec<i64> = rows.iter().map(|(_, size)| *size).collect();
    let part = usize::try_from(page_of(&sizes)).unwrap_or(usize::MAX);
    let is_all = part >= rows.len() && rows.len() < PAGE_STATES;
    let last = rows.get(part.saturating_sub(1)).filter(|_| !is_all);
    last.map_or(current, |(revision, _)| *revision)
}

/// A part of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// In revision order, tombstones among them.
    pub states: Vec<StoredState>,
    /// Everything up to this revision has been shown now.
    pub until: i64,
    /// How far the log went when it was read.
    pub revision: i64,
}

/// Where a copy comes from. Each call is an answer for itself: whoever is cut off asks again.
pub trait CopySource: Send + Sync {
    /// Who it is and how far its log goes, asked now.
    fn extent(&self) -> BoxFuture<'_, Result<Extent, CopyError>>;

    /// The next states of exactly a revision, behind a key, in key order; none: there are no more. [`StoredState::owners`] is
    /// missing where a value is sealed, was superseded since, and cannot be opened here.
    fn states<'a>(
        &'a self,
        revision: i64,
        after: Option<&'a Key>,
    ) -> BoxFuture<'a, Result<Vec<StoredState>, CopyError>>;

    /// What was written after a revision. [`StoredState::owners`] is missing as in [`CopySource::states`].
    fn changes(&self, after: i64) -> BoxFuture<'_, Result<Changes, CopyError>>;

    /// Where the revision stood at a time in Unix seconds; 0 when nothing is known that far back.
    fn revision_at(&self, time: i64) -> BoxFuture<'_, Result<i64, CopyError>>;

    /// The next part of the archive of past states, of those that were superseded up to a revision, behind a place. [`ArchivePart::kept`]
    /// is there once nothing is behind it.
    fn archive(&self, _revision: i64, _after: ArchiveAt) -> BoxFuture<'_, Result<ArchivePart, CopyError>> {
        let none = ArchivePart { kept: Some(Kept::default()), ..ArchivePart::default() };
        Box::pin(std::future::ready(Ok(none)))
    }

    /// How far its revision may still move once writes to the store are stopped, by what is no write to the store: a copy that keeps
    /// the revisions goes on behind that.
    fn moves_on_by(&self) -> i64 {
        0
    }
}

/// Stops and resumes the writes of a store, of all processes that write to it.
pub trait WriteSwitch: Send + Sync {
    /// Refuses writes for this reason from the answered revision on (nothing with a higher one is acknowledged), or, without a
    /// reason, takes them again. What is so already stays so.
    fn set_read_only<'a>(&'a self, reason: Option<&'a str>) -> BoxFuture<'a, Result<i64, CopyError>>;
}

/// What became of the place of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Who the store is there, and how far its log goes.
    pub extent: Extent,
    /// Where what was there before is kept, if it is.
    pub kept: Option<String>,
}

/// Where a copy goes. Nothing of it is there before [`CopyTarget::finish`]; dropped without it, nothing is left. A target that
/// numbers by itself cannot do this: what it has been given is there, under a mark that keeps everybody from serving it.
pub trait CopyTarget: Send {
    /// What is there and would be replaced; none when there is no object in it. The revision is the highest that is known.
    fn replaces(&self) -> Option<&Extent>;

    /// Whether something was written to what is there that a source has not which stands here and may move on by so much.
    fn has_more_than(&self, source: &Extent, moves_on_by: i64) -> bool {
        let last = source.revision.saturating_add(moves_on_by);
        self.replaces().is_some_and(|there| {
            there.identity.store_id == source.identity.store_id
                && (there.identity.epoch, there.revision) > (source.identity.epoch, last)
        })
    }

    /// Whether what is there goes though it has more than what comes in its place.
    fn may_lose(&self) -> bool {
        true
    }

    /// Whether the database gives revisions to what is written, whatever the states say: then a copy begins a new epoch.
    fn numbers_by_itself(&self) -> bool {
        false
    }

    /// Takes states of objects of which it has none yet.
    fn add(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>>;

    /// Takes states that follow those that it has, in revision order; the owners of a state count once it is an object's last one.
    fn follow(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>>;

    /// Whether it has an archive of past states.
    fn keeps_archive(&self) -> bool {
        false
    }

    /// Takes a part of an archive, if it keeps one. [`ArchivePart::kept`] comes last, and what belongs to no resource of it goes.
    fn archive(&mut self, _part: ArchivePart) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Makes what was added, and nothing else, the store. One that numbers by itself begins at the revision of `becomes` or a higher
    /// one, and answers which.
    fn finish(self: Box<Self>, becomes: Extent) -> BoxFuture<'static, Result<Finished, CopyError>>;
}
