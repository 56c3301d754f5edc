//! Restores a portable backup as a new epoch.

use std::path::Path;

use super::archive::{ArchiveContents, ArchivePart, RevisionGap};
use super::engine::{CopyTarget, FinishedCopy};
use super::error::CopyError;
use super::file::{BackupFile, BackupPart, Header};
use super::revision_allocator::RevisionAllocator;
use super::store_extent::StoreExtent;
use crate::epoch;
use crate::identity::Identity;

/// Result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreSummary {
    /// Identity and first revision of the restored store.
    pub extent: StoreExtent,
    /// Number of objects.
    pub objects: u64,
    /// Number of archived past states.
    pub past_states: u64,
    /// Number of past states in the backup that were not restored.
    pub skipped_past_states: u64,
    /// Location of the replaced store, if it was saved.
    pub saved_to: Option<String>,
}

/// Options of a restore.
#[derive(Clone, Copy, Debug)]
pub struct RestoreOptions {
    /// Distance between the last known revision and the start of the new epoch.
    pub bump: i64,
    /// True to restore past states.
    pub history: bool,
}

/// Restores a backup to a target, as a new epoch that begins [`RestoreOptions::bump`] revisions after all known ones.
///
/// # Errors
/// [`CopyError`]. The target is then unchanged, or marked as incomplete if it assigns revisions.
pub async fn restore_from(
    file: &Path,
    mut target: Box<dyn CopyTarget>,
    options: RestoreOptions,
) -> Result<RestoreSummary, CopyError> {
    let mut backup = BackupFile::open(file)?;
    let header = backup.header().clone();
    let existing = target.existing().map_or((0, 0), |extent| (extent.identity.epoch, extent.revision));
    let restores_history = options.history && target.has_archive();
    let failed = |error| CopyError::Format { path: file.to_owned(), error };
    let (mut allocator, mut contents) = (RevisionAllocator::new(header.revision), None);
    while let Some(part) = backup.next_part().map_err(failed)? {
        match part {
            BackupPart::States(mut states) => {
                if !target.assigns_revisions() {
                    allocator.add(&mut states);
                }
                target.add(states).await?;
            }
            BackupPart::Archive(mut part) if restores_history => {
                contents = part.contents.take();
                target.archive(part).await?;
            }
            BackupPart::Archive(_) => {}
        }
    }
    let last = allocator.last_allocated().unwrap_or(header.revision);
    let next = epoch::next_epoch(existing.0.max(header.epoch), existing.1.max(last), options.bump);
    let (epoch, revision) = next.ok_or(CopyError::Exhausted)?;
    if let Some(contents) = contents {
        target.archive(end_of_archive(contents, &header, revision)).await?;
    }
    let new_extent =
        StoreExtent { identity: Identity { store_id: header.store_id, epoch }, revision, oldest: revision };
    let FinishedCopy { extent, saved_to } = target.finish(new_extent).await?;
    let counts = backup.counts();
    let count = counts.past_states.unwrap_or_default();
    let (past_states, skipped_past_states) = if restores_history { (count, 0) } else { (0, count) };
    Ok(RestoreSummary { extent, objects: counts.objects, past_states, skipped_past_states, saved_to })
}

/// Returns the last part of the archive: its contents, and the unused revisions between the backup and the new epoch.
fn end_of_archive(mut contents: ArchiveContents, header: &Header, epoch_start: i64) -> ArchivePart {
    contents.gaps.push(RevisionGap { after: header.revision, until: epoch_start });
    ArchivePart { contents: Some(contents), ..ArchivePart::default() }
}
