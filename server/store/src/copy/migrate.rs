//! Moves a store from one database to another while it is served: copies the state of a revision, then concurrent commits,
//! then, after writes are stopped, the last ones.
//!
//! The new database is the same store, with its ID, epoch and revisions. If it cannot preserve the revisions (etcd
//! assigns them itself, and gives one revision to several objects, which other databases cannot), it begins a new
//! epoch (docs/internals/adr/0030).

use std::time::{Duration, Instant};

use super::archive::{ArchiveAt, ArchivePart, Kept, Lost};
use super::backup::{archive_of, readable};
use super::distinct::Distinct;
use super::engine::{CopySource, CopyTarget, Finished, WriteSwitch};
use super::error::CopyError;
use super::extent::Extent;
use super::state::StoredState;
use crate::epoch::{self, DEFAULT_REVISION_BUMP};
use crate::identity::Identity;
use crate::key::Key;
use crate::read_only;

/// Maximum number of revisions that are still to be copied when writes are stopped.
const CLOSE: i64 = 500;
/// Maximum number of rounds to reach this lag during concurrent writes.
const ROUNDS: u32 = 1_000;

/// Parameters of a migration.
pub struct Migration<'a> {
    /// Source of the copy.
    pub source: &'a dyn CopySource,
    /// Switch that stops writes to the source.
    pub switch: &'a dyn WriteSwitch,
    /// Error message of rejected writes.
    pub reason: &'a str,
    /// True to move past states of the archive.
    pub history: bool,
}

/// Progress of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationStep {
    /// Part of the archive was copied.
    Archived {
        /// Past states so far.
        states: u64,
    },
    /// Part of the state of the revision was copied.
    Copied {
        /// Objects so far.
        objects: u64,
        /// Bytes of values so far.
        bytes: u64,
    },
    /// Changes were applied.
    Followed {
        /// Changes so far.
        changes: u64,
        /// Number of revisions still to be copied.
        behind: i64,
    },
    /// Writes were stopped.
    Stopped {
        /// Last revision.
        revision: i64,
    },
}

/// Result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Identity and head of the store in the new database.
    pub extent: Extent,
    /// True if the store has a new epoch: clients cannot resume.
    pub is_new_epoch: bool,
    /// Number of copied objects.
    pub objects: u64,
    /// Number of applied changes.
    pub changes: u64,
    /// Number of copied past states.
    pub past: u64,
    /// True if the source has past states that were not moved.
    pub left_behind: bool,
    /// Time from the start of rejected writes until the new database was complete.
    pub stopped: Duration,
    /// Location of the replaced store, if it was saved.
    pub kept: Option<String>,
}

/// Moves a store. Reports each step.
///
/// # Errors
/// [`CopyError`]. The target is then unchanged or marked as incomplete, and the source accepts writes again if it can be reached.
pub async fn migrate(
    migration: &Migration<'_>,
    mut target: Box<dyn CopyTarget>,
    step: &mut (dyn FnMut(MigrationStep) + Send),
) -> Result<Migrated, CopyError> {
    let source = migration.source;
    refuse_loss(target.as_ref(), source).await?;
    let kept = archive_of(source, migration.history).await?;
    let left_behind = kept.is_some() && !target.keeps_archive();
    let kept = kept.filter(|_| !left_behind);
    let mut archive = Archive { source, kept, at: ArchiveAt::default(), states: 0 };
    // The archive takes longest and comes first, so that the log is not compacted while it is needed.
    archive.copy(target.as_mut(), source.extent().await?.revision, step).await?;
    let begun = source.extent().await?;
    let at = readable(&begun, begun.revision)?;
    let beyond = at.checked_add(DEFAULT_REVISION_BUMP).ok_or(CopyError::Exhausted)?;
    let mut following = Following { source, at, changes: 0, distinct: Distinct::new(beyond) };
    let objects = following.copy(target.as_mut(), step).await?;
    archive.copy(target.as_mut(), at, step).await?;
    for _ in 0..ROUNDS {
        let behind = following.part(target.as_mut()).await?;
        step(MigrationStep::Followed { changes: following.changes, behind });
        if behind <= CLOSE {
            break;
        }
    }
    let stopped = Instant::now();
    let past = archive.states;
    match finish(migration, (following, archive), target, at, step).await {
        Ok((Finished { extent, kept }, changes)) => {
            let (stopped, is_new_epoch) = (stopped.elapsed(), extent.identity != begun.identity);
            Ok(Migrated { extent, is_new_epoch, objects, changes, past, left_behind, stopped, kept })
        }
        // The new database may be complete: the old one must not accept writes any more.
        Err(error @ CopyError::InDoubt { .. }) => Err(error),
        Err(error) => {
            if let Err(error) = migration.switch.set_read_only(None).await {
                tracing::error!(%error, "cannot resume writes to the source, the source stays read-only");
            }
            Err(error)
        }
    }
}

/// Rejects the migration if the existing store is a newer state of the same store, from an earlier migration.
async fn refuse_loss(target: &dyn CopyTarget, source: &dyn CopySource) -> Result<(), CopyError> {
    let Some(there) = target.replaces().filter(|_| !target.may_lose()) else { return Ok(()) };
    let extent = source.extent().await?;
    match target.has_more_than(&extent, source.moves_on_by()) {
        true => Err(CopyError::HasMore { there: there.clone(), from: extent }),
        false => Ok(()),
    }
}

/// Stops writes, copies the remaining commits, and finishes the new database.
async fn finish(
    migration: &Migration<'_>,
    (mut following, archive): (Following<'_>, Archive<'_>),
    mut target: Box<dyn CopyTarget>,
    at: i64,
    step: &mut (dyn FnMut(MigrationStep) + Send),
) -> Result<(Finished, u64), CopyError> {
    let last = migration.switch.set_read_only(Some(migration.reason)).await?;
    step(MigrationStep::Stopped { revision: last });
    let now = following.until_settled(target.as_mut(), last).await?;
    let becomes = following.becomes(target.as_ref(), &now, at)?;
    let lost =
        (becomes.identity != now.identity).then_some(Lost { after: now.revision, until: becomes.revision });
    archive.end(target.as_mut(), now.revision, lost).await?;
    Ok((target.finish(becomes).await?, following.changes))
}

/// Copy of the archive.
struct Archive<'a> {
    source: &'a dyn CopySource,
    /// Contents of the archive at the start; `None` if it is not copied.
    kept: Option<Kept>,
    at: ArchiveAt,
    states: u64,
}

impl Archive<'_> {
    /// Copies states that were superseded up to a revision and were not copied yet.
    async fn copy(
        &mut self,
        target: &mut dyn CopyTarget,
        revision: i64,
        step: &mut (dyn FnMut(MigrationStep) + Send),
    ) -> Result<(), CopyError> {
        while self.kept.is_some() {
            let mut part = self.part(self.at, revision).await?;
            let ended = part.kept.take().is_some();
            self.states += part.states.len() as u64;
            target.archive(part).await?;
            step(MigrationStep::Archived { states: self.states });
            if ended {
                break;
            }
        }
        Ok(())
    }

    /// Copies the time marks since, the list of complete contents, and the unused revisions.
    async fn end(
        mut self,
        target: &mut dyn CopyTarget,
        revision: i64,
        lost: Option<Lost>,
    ) -> Result<(), CopyError> {
        let Some(first) = self.kept.take() else { return Ok(()) };
        loop {
            let mut part = self.part(ArchiveAt::marks_behind(self.at.mark), revision).await?;
            let kept = part.kept.take();
            target.archive(part).await?;
            if let Some(kept) = kept {
                let mut kept = first.until_the_end(kept);
                kept.lost.extend(lost);
                return target.archive(ArchivePart { kept: Some(kept), ..ArchivePart::default() }).await;
            }
        }
    }

    async fn part(&mut self, after: ArchiveAt, revision: i64) -> Result<ArchivePart, CopyError> {
        let part = self.source.archive(revision, after).await?;
        self.at.pass(&part, revision).map_err(CopyError::Unreadable)?;
        Ok(part)
    }
}

/// Copy of the current state and of the log.
struct Following<'a> {
    source: &'a dyn CopySource,
    /// Revision up to which everything is copied.
    at: i64,
    changes: u64,
    /// Allocator of distinct revisions, for targets that store one state per revision.
    distinct: Distinct,
}

impl Following<'_> {
    /// Copies the state of the revision. Returns the number of objects.
    async fn copy(
        &mut self,
        target: &mut dyn CopyTarget,
        step: &mut (dyn FnMut(MigrationStep) + Send),
    ) -> Result<u64, CopyError> {
        let (mut objects, mut bytes, mut after) = (0, 0, None::<Key>);
        loop {
            let states = self.source.states(self.at, after.as_ref()).await?;
            let Some(last) = states.last() else { return Ok(objects) };
            after = Some(last.key.clone());
            let mut states = without_switch(states);
            objects += states.len() as u64;
            bytes += states.iter().map(|state| state.value.len() as u64).sum::<u64>();
            if !target.numbers_by_itself() {
                self.distinct.add(&mut states);
            }
            target.add(states).await?;
            step(MigrationStep::Copied { objects, bytes });
        }
    }

    /// Returns the extent of the store in the new database, after writes to the source are stopped at `there`. The new database
    /// has no states before the copy.
    fn becomes(&self, target: &dyn CopyTarget, there: &Extent, copied: i64) -> Result<Extent, CopyError> {
        let Extent { identity, revision, .. } = there.clone();
        let (given, moves_on_by) = (self.distinct.last(), self.source.moves_on_by());
        // Revisions that clients may have seen from the existing store must not be reused.
        let is_kept = given.is_none() && !target.has_more_than(there, moves_on_by);
        if is_kept && !target.numbers_by_itself() {
            let revision = revision.checked_add(moves_on_by).ok_or(CopyError::Exhausted)?;
            return Ok(Extent { identity, revision, oldest: copied });
        }
        let replaced = target.replaces().map_or((0, 0), |there| (there.identity.epoch, there.revision));
        let last = given.unwrap_or(revision).max(replaced.1);
        let next = epoch::after(identity.epoch.max(replaced.0), last, 1);
        let (epoch, revision) = next.ok_or(CopyError::Exhausted)?;
        let identity = Identity { store_id: identity.store_id, epoch };
        Ok(Extent { identity, revision, oldest: revision })
    }

    /// Copies the next part. Returns the number of revisions still to be copied.
    async fn part(&mut self, target: &mut dyn CopyTarget) -> Result<i64, CopyError> {
        let part = self.source.changes(self.at).await?;
        let mut states = without_switch(part.states);
        self.changes += states.len() as u64;
        if !states.is_empty() {
            if !target.numbers_by_itself() {
                self.distinct.follow(&mut states);
            }
            target.follow(states).await?;
        }
        self.at = part.until;
        Ok(part.revision - part.until)
    }

    /// Copies the rest of the log after writes are stopped. Only a query for the result of a commit in doubt can
    /// still advance the revision.
    async fn until_settled(&mut self, target: &mut dyn CopyTarget, last: i64) -> Result<Extent, CopyError> {
        for _ in 0..ROUNDS {
            self.part(target).await?;
            let now = self.source.extent().await?;
            let moves_on = self.at < now.revision && self.source.moves_on_by() == 0;
            if self.at >= last && !moves_on {
                return Ok(now);
            }
        }
        let reason = format!("commits arrived after writes were stopped at revision {last}");
        Err(CopyError::Store { place: "the source".to_owned(), reason })
    }
}

/// Removes the read-only record, so that the new database accepts writes.
fn without_switch(mut states: Vec<StoredState>) -> Vec<StoredState> {
    states.retain(|state| !read_only::is_switch(&state.key));
    states
}
