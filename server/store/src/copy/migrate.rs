//! Moves a store from one database to another while it is served: copies the state of a revision, then concurrent commits,
//! then, after writes are stopped, the last ones.
//!
//! The new database is the same store, with its ID, epoch and revisions. If it cannot preserve the revisions (etcd
//! assigns them itself, and gives one revision to several objects, which other databases cannot), it begins a new
//! epoch (docs/internals/adr/0030).

use std::time::{Duration, Instant};

use super::archive::{ArchiveContents, ArchiveCursor, ArchivePart, RevisionGap};
use super::backup::{archive_contents, check_readable};
use super::engine::{CopySource, CopyTarget, FinishedCopy, WriteSwitch};
use super::error::CopyError;
use super::revision_allocator::RevisionAllocator;
use super::state::StoredState;
use super::store_extent::StoreExtent;
use crate::epoch::{self, DEFAULT_REVISION_BUMP};
use crate::identity::Identity;
use crate::key::Key;
use crate::read_only;

/// Maximum number of revisions that are still to be copied when writes are stopped.
const MAX_FINAL_LAG: i64 = 500;
/// Maximum number of rounds to reach this lag during concurrent writes.
const MAX_ROUNDS: u32 = 1_000;

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
        lag: i64,
    },
    /// Writes were stopped.
    Stopped {
        /// Last revision.
        revision: i64,
    },
}

/// Result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationSummary {
    /// Identity and head of the store in the new database.
    pub extent: StoreExtent,
    /// True if the store has a new epoch: clients cannot resume.
    pub is_new_epoch: bool,
    /// Number of copied objects.
    pub objects: u64,
    /// Number of applied changes.
    pub changes: u64,
    /// Number of copied past states.
    pub past_states: u64,
    /// True if the source has past states that were not moved.
    pub history_skipped: bool,
    /// Time from the start of rejected writes until the new database was complete.
    pub write_downtime: Duration,
    /// Location of the replaced store, if it was saved.
    pub saved_to: Option<String>,
}

/// Moves a store. Reports each step.
///
/// # Errors
/// [`CopyError`]. The target is then unchanged or marked as incomplete, and the source accepts writes again if it can be reached.
pub async fn migrate(
    migration: &Migration<'_>,
    mut target: Box<dyn CopyTarget>,
    step: &mut (dyn FnMut(MigrationStep) + Send),
) -> Result<MigrationSummary, CopyError> {
    let source = migration.source;
    check_not_newer(target.as_ref(), source).await?;
    let available = archive_contents(source, migration.history).await?;
    let history_skipped = available.is_some() && !target.has_archive();
    let contents = available.filter(|_| !history_skipped);
    let mut archive = ArchiveCopy { source, contents, cursor: ArchiveCursor::default(), states: 0 };
    // The archive takes longest and comes first, so that the log is not compacted while it is needed.
    archive.copy(target.as_mut(), source.extent().await?.revision, step).await?;
    let initial_extent = source.extent().await?;
    let revision = check_readable(&initial_extent, initial_extent.revision)?;
    let first_new_revision = revision.checked_add(DEFAULT_REVISION_BUMP).ok_or(CopyError::Exhausted)?;
    let mut log_copy =
        LogCopy { source, revision, changes: 0, allocator: RevisionAllocator::new(first_new_revision) };
    let objects = log_copy.copy(target.as_mut(), step).await?;
    archive.copy(target.as_mut(), revision, step).await?;
    for _ in 0..MAX_ROUNDS {
        let lag = log_copy.copy_part(target.as_mut()).await?;
        step(MigrationStep::Followed { changes: log_copy.changes, lag });
        if lag <= MAX_FINAL_LAG {
            break;
        }
    }
    let stopped_at = Instant::now();
    let past_states = archive.states;
    match finish(migration, (log_copy, archive), target, revision, step).await {
        Ok((FinishedCopy { extent, saved_to }, changes)) => {
            let (write_downtime, is_new_epoch) =
                (stopped_at.elapsed(), extent.identity != initial_extent.identity);
            Ok(MigrationSummary {
                extent,
                is_new_epoch,
                objects,
                changes,
                past_states,
                history_skipped,
                write_downtime,
                saved_to,
            })
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
async fn check_not_newer(target: &dyn CopyTarget, source: &dyn CopySource) -> Result<(), CopyError> {
    let Some(existing) = target.existing().filter(|_| !target.allows_data_loss()) else { return Ok(()) };
    let extent = source.extent().await?;
    match target.is_newer_than(&extent, source.max_revision_drift()) {
        true => Err(CopyError::TargetIsNewer { existing: existing.clone(), source_extent: extent }),
        false => Ok(()),
    }
}

/// Stops writes, copies the remaining commits, and finishes the new database.
async fn finish(
    migration: &Migration<'_>,
    (mut log_copy, archive): (LogCopy<'_>, ArchiveCopy<'_>),
    mut target: Box<dyn CopyTarget>,
    copied_revision: i64,
    step: &mut (dyn FnMut(MigrationStep) + Send),
) -> Result<(FinishedCopy, u64), CopyError> {
    let last = migration.switch.set_read_only(Some(migration.reason)).await?;
    step(MigrationStep::Stopped { revision: last });
    let extent = log_copy.drain_log(target.as_mut(), last).await?;
    let new_extent = log_copy.new_extent(target.as_ref(), &extent, copied_revision)?;
    let gap = (new_extent.identity != extent.identity)
        .then_some(RevisionGap { after: extent.revision, until: new_extent.revision });
    archive.end(target.as_mut(), extent.revision, gap).await?;
    Ok((target.finish(new_extent).await?, log_copy.changes))
}

/// Copy of the archive.
struct ArchiveCopy<'a> {
    source: &'a dyn CopySource,
    /// Contents of the archive at the start; `None` if it is not copied.
    contents: Option<ArchiveContents>,
    cursor: ArchiveCursor,
    states: u64,
}

impl ArchiveCopy<'_> {
    /// Copies states that were superseded up to a revision and were not copied yet.
    async fn copy(
        &mut self,
        target: &mut dyn CopyTarget,
        revision: i64,
        step: &mut (dyn FnMut(MigrationStep) + Send),
    ) -> Result<(), CopyError> {
        while self.contents.is_some() {
            let mut part = self.read_part(self.cursor, revision).await?;
            let ended = part.contents.take().is_some();
            self.states += part.states.len() as u64;
            target.archive(part).await?;
            step(MigrationStep::Archived { states: self.states });
            if ended {
                break;
            }
        }
        Ok(())
    }

    /// Copies the remaining time marks, the list of complete contents, and the unused revisions.
    async fn end(
        mut self,
        target: &mut dyn CopyTarget,
        revision: i64,
        gap: Option<RevisionGap>,
    ) -> Result<(), CopyError> {
        let Some(initial_contents) = self.contents.take() else { return Ok(()) };
        loop {
            let mut part = self.read_part(ArchiveCursor::after_mark(self.cursor.mark), revision).await?;
            let contents = part.contents.take();
            target.archive(part).await?;
            if let Some(contents) = contents {
                let mut contents = initial_contents.intersect(contents);
                contents.gaps.extend(gap);
                return target
                    .archive(ArchivePart { contents: Some(contents), ..ArchivePart::default() })
                    .await;
            }
        }
    }

    async fn read_part(&mut self, after: ArchiveCursor, revision: i64) -> Result<ArchivePart, CopyError> {
        let part = self.source.archive(revision, after).await?;
        self.cursor.advance(&part, revision).map_err(CopyError::Unreadable)?;
        Ok(part)
    }
}

/// Copy of the current state and of the log.
struct LogCopy<'a> {
    source: &'a dyn CopySource,
    /// Revision up to which everything is copied.
    revision: i64,
    changes: u64,
    /// Allocator of distinct revisions, for targets that store one state per revision.
    allocator: RevisionAllocator,
}

impl LogCopy<'_> {
    /// Copies the state of the revision. Returns the number of objects.
    async fn copy(
        &mut self,
        target: &mut dyn CopyTarget,
        step: &mut (dyn FnMut(MigrationStep) + Send),
    ) -> Result<u64, CopyError> {
        let (mut objects, mut bytes, mut after) = (0, 0, None::<Key>);
        loop {
            let states = self.source.states(self.revision, after.as_ref()).await?;
            let Some(last) = states.last() else { return Ok(objects) };
            after = Some(last.key.clone());
            let mut states = without_read_only_record(states);
            objects += states.len() as u64;
            bytes += states.iter().map(|state| state.value.len() as u64).sum::<u64>();
            if !target.assigns_revisions() {
                self.allocator.add(&mut states);
            }
            target.add(states).await?;
            step(MigrationStep::Copied { objects, bytes });
        }
    }

    /// Returns the extent of the store in the new database, after writes to the source are stopped at `source_extent`. The
    /// new database has no states before `copied_revision`.
    fn new_extent(
        &self,
        target: &dyn CopyTarget,
        source_extent: &StoreExtent,
        copied_revision: i64,
    ) -> Result<StoreExtent, CopyError> {
        let StoreExtent { identity, revision, .. } = source_extent.clone();
        let (last_allocated, max_drift) = (self.allocator.last_allocated(), self.source.max_revision_drift());
        // Revisions that clients may have seen from the existing store must not be reused.
        let keeps_epoch = last_allocated.is_none() && !target.is_newer_than(source_extent, max_drift);
        if keeps_epoch && !target.assigns_revisions() {
            let revision = revision.checked_add(max_drift).ok_or(CopyError::Exhausted)?;
            return Ok(StoreExtent { identity, revision, oldest: copied_revision });
        }
        let replaced =
            target.existing().map_or((0, 0), |existing| (existing.identity.epoch, existing.revision));
        let last = last_allocated.unwrap_or(revision).max(replaced.1);
        let next = epoch::next_epoch(identity.epoch.max(replaced.0), last, 1);
        let (epoch, revision) = next.ok_or(CopyError::Exhausted)?;
        let identity = Identity { store_id: identity.store_id, epoch };
        Ok(StoreExtent { identity, revision, oldest: revision })
    }

    /// Copies the next part. Returns the number of revisions still to be copied.
    async fn copy_part(&mut self, target: &mut dyn CopyTarget) -> Result<i64, CopyError> {
        let part = self.source.changes(self.revision).await?;
        let mut states = without_read_only_record(part.states);
        self.changes += states.len() as u64;
        if !states.is_empty() {
            if !target.assigns_revisions() {
                self.allocator.follow(&mut states);
            }
            target.follow(states).await?;
        }
        self.revision = part.until;
        Ok(part.revision - part.until)
    }

    /// Copies the rest of the log after writes are stopped. Only a query for the result of a commit in doubt can
    /// still advance the revision.
    async fn drain_log(&mut self, target: &mut dyn CopyTarget, last: i64) -> Result<StoreExtent, CopyError> {
        for _ in 0..MAX_ROUNDS {
            self.copy_part(target).await?;
            let extent = self.source.extent().await?;
            let is_advancing = self.revision < extent.revision && self.source.max_revision_drift() == 0;
            if self.revision >= last && !is_advancing {
                return Ok(extent);
            }
        }
        let reason = format!("commits arrived after writes were stopped at revision {last}");
        Err(CopyError::Store { place: "the source".to_owned(), reason })
    }
}

/// Removes the read-only record, so that the new database accepts writes.
fn without_read_only_record(mut states: Vec<StoredState>) -> Vec<StoredState> {
    states.retain(|state| !read_only::is_read_only_key(&state.key));
    states
}
