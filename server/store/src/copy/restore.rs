//! Restores a portable backup as a new epoch.

use std::path::Path;

use super::archive::{ArchivePart, Kept, Lost};
use super::distinct::Distinct;
use super::engine::{CopyTarget, Finished};
use super::error::CopyError;
use super::extent::Extent;
use super::file::{BackupFile, BackupPart, Header};
use crate::epoch;
use crate::identity::Identity;

/// Result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredFrom {
    /// Identity and first revision of the restored store.
    pub becomes: Extent,
    /// Number of objects.
    pub objects: u64,
    /// Number of archived past states.
    pub past: u64,
    /// Number of past states in the backup that were not restored.
    pub left_behind: u64,
    /// Location of the replaced store, if it was saved.
    pub kept: Option<String>,
}

/// Options of a restore.
#[derive(Clone, Copy, Debug)]
pub struct Restoring {
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
    restoring: Restoring,
) -> Result<RestoredFrom, CopyError> {
    let mut backup = BackupFile::open(file)?;
    let header = backup.header().clone();
    let known = target.replaces().map_or((0, 0), |there| (there.identity.epoch, there.revision));
    let takes_history = restoring.history && target.keeps_archive();
    let failed = |error| CopyError::Format { path: file.to_owned(), error };
    let (mut distinct, mut kept) = (Distinct::new(header.revision), None);
    while let Some(part) = backup.next_part().map_err(failed)? {
        match part {
            BackupPart::States(mut states) => {
                if !target.numbers_by_itself() {
                    distinct.add(&mut states);
                }
                target.add(states).await?;
            }
            BackupPart::Archive(mut part) if takes_history => {
                kept = part.kept.take();
                target.archive(part).await?;
            }
            BackupPart::Archive(_) => {}
        }
    }
    let last = distinct.last().unwrap_or(header.revision);
    let next = epoch::after(known.0.max(header.epoch), known.1.max(last), restoring.bump);
    let (epoch, revision) = next.ok_or(CopyError::Exhausted)?;
    if let Some(kept) = kept {
        target.archive(end_of_archive(kept, &header, revision)).await?;
    }
    let becomes =
        Extent { identity: Identity { store_id: header.store_id, epoch }, revision, oldest: revision };
    let Finished { extent, kept } = target.finish(becomes).await?;
    let counts = backup.counts();
    let past = counts.past.unwrap_or_default();
    let (past, left_behind) = if takes_history { (past, 0) } else { (0, past) };
    Ok(RestoredFrom { becomes: extent, objects: counts.objects, past, left_behind, kept })
}

/// Returns the last part of the archive: its contents, and the unused revisions between the backup and the new epoch.
fn end_of_archive(mut kept: Kept, header: &Header, begins: i64) -> ArchivePart {
    kept.lost.push(Lost { after: header.revision, until: begins });
    ArchivePart { kept: Some(kept), ..ArchivePart::default() }
}
