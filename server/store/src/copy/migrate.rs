//! Moves a store from one database to another while it is served: a state, then what is written meanwhile, then, with writes
//! stopped, the rest.
//!
//! The new database is the same store: its id, its epoch, its revisions. Where it cannot keep the revisions (etcd numbers by
//! itself, and gives one revision to several objects, which others cannot) it is a new epoch of the store (docs/internals/adr/0030).

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

/// How many revisions may be missing when writes are stopped.
const CLOSE: i64 = 500;
/// How often it is tried to come so near while others write.
const ROUNDS: u32 = 1_000;

/// What is moved.
pub struct Migration<'a> {
    /// From where.
    pub source: &'a dyn CopySource,
    /// What stops its writes.
    pub switch: &'a dyn WriteSwitch,
    /// The error message for those whose writes are refused.
    pub reason: &'a str,
    /// Whether past states of the archive are moved, too.
    pub history: bool,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationStep {
    /// The archive is copied.
    Archived {
        /// Past states so far.
        states: u64,
    },
    /// The state of a revision is copied.
    Copied {
        /// Objects so far.
        objects: u64,
        /// Bytes of values so far.
        bytes: u64,
    },
    /// Changes are taken up.
    Followed {
        /// Changes so far.
        changes: u64,
        /// How many revisions are missing.
        behind: i64,
    },
    /// Writes are stopped.
    Stopped {
        /// The last revision.
        revision: i64,
    },
}

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Who it is, and how far its log goes, in the new database.
    pub extent: Extent,
    /// Whether it is a new epoch: nothing that clients hold goes on.
    pub is_new_epoch: bool,
    /// How many objects were copied.
    pub objects: u64,
    /// How many changes were taken up.
    pub changes: u64,
    /// How many past states were copied.
    pub past: u64,
    /// Whether the source has past states that were not moved.
    pub left_behind: bool,
    /// From when writes were refused until the new database was whole.
    pub stopped: Duration,
    /// Where what was in the new database before is kept, if it is.
    pub kept: Option<String>,
}

/// Moves a store. Each step is reported.
///
/// # Errors
/// [`CopyError`]; then the place is as it was (or marked as not whole), and the source takes writes as before, if it can be reached.
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
    // What takes longest comes first: nothing of the log is waited for that may be forgotten meanwhile.
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
        // The new database may be whole: then nothing may be written to the old one any more.
        Err(error @ CopyError::InDoubt { .. }) => Err(error),
        Err(error) => {
            if let Err(error) = migration.switch.set_read_only(None).await {
                tracing::error!(%error, "cannot resume writes to the source, the source stays read-only");
            }
            Err(error)
        }
    }
}

/// What would be replaced may be what was moved here before, and served since.
async fn refuse_loss(target: &dyn CopyTarget, source: &dyn CopySource) -> Result<(), CopyError> {
    let Some(there) = target.replaces().filter(|_| !target.may_lose()) else { return Ok(()) };
    let extent = source.extent().await?;
    match target.has_more_than(&extent, source.moves_on_by()) {
        true => Err(CopyError::HasMore { there: there.clone(), from: extent }),
        false => Ok(()),
    }
}

/// Stops writes, takes up the rest, and makes the new database whole.
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

/// Takes up what was.
struct Archive<'a> {
    source: &'a dyn CopySource,
    /// What there was when it was begun; none where nothing is taken.
    kept: Option<Kept>,
    at: ArchiveAt,
    states: u64,
}

impl Archive<'_> {
    /// Copies what was superseded up to a revision, and was not copied yet.
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

    /// When what was taken up since was written, what is complete, and which revisions are nobody's.
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

/// Takes up what is written.
struct Following<'a> {
    source: &'a dyn CopySource,
    /// Everything up to here is taken up.
    at: i64,
    changes: u64,
    /// What the target keeps by revisions.
    distinct: Distinct,
}

impl Following<'_> {
    /// Copies the state of the revision; how many objects it has.
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

    /// Who the store is in the new database, where the old one is there and takes no writes. What was before the copy is not there.
    fn becomes(&self, target: &dyn CopyTarget, there: &Extent, copied: i64) -> Result<Extent, CopyError> {
        let Extent { identity, revision, .. } = there.clone();
        let (given, moves_on_by) = (self.distinct.last(), self.source.moves_on_by());
        // Revisions that were given out at the new place already would be given again.
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

    /// The next part; how many revisions are missing then.
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

    /// The rest, behind which nothing is written. The revision alone may still be moved by somebody who looks what became of a write.
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

/// The new database takes writes.
fn without_switch(mut states: Vec<StoredState>) -> Vec<StoredState> {
    states.retain(|state| !read_only::is_switch(&state.key));
    states
}
