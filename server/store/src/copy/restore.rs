//! Takes a portable backup into service, as a new epoch.

use std::path::Path;

use super::archive::{ArchivePart, Kept, Lost};
use super::distinct::Distinct;
use super::engine::{CopyTarget, Finished};
use super::error::CopyError;
use super::extent::Extent;
use super::file::{BackupFile, BackupPart, Header};
use crate::epoch;
use crate::identity::Identity;

/// What was taken into service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredFrom {
    /// Who it is, and where it begins.
    pub becomes: Extent,
    /// How many objects it has.
    pub objects: u64,
    /// How many past states its archive has.
    pub past: u64,
    /// How many past states are in the backup and were not taken.
    pub left_behind: u64,
    /// Where what was there before is kept, if it is.
    pub kept: Option<String>,
}

/// How a backup is restored.
#[derive(Clone, Copy, Debug)]
pub struct Restoring {
    /// How far past all known revisions the new epoch begins.
    pub bump: i64,
    /// Whether past states are taken.
    pub history: bool,
}

/// Reads a backup into a place, as a new epoch whose revisions begin [`Restoring::bump`] past all that are known.
///
/// # Errors
/// [`CopyError`]; then nothing has changed there, or, where a target numbers by itself, it is marked as not whole.
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

/// What is kept, and that the revisions between the backup and the new epoch are nobody's.
fn end_of_archive(mut kept: Kept, header: &Header, begins: i64) -> ArchivePart {
    kept.lost.push(Lost { after: header.revision, until: begins });
    ArchivePart { kept: Some(kept), ..ArchivePart::default() }
}
