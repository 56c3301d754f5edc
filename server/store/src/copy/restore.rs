//! Takes a portable backup into service, as a new epoch.

use std::path::Path;

use super::distinct::Distinct;
use super::engine::{CopyTarget, Extent, Finished};
use super::error::CopyError;
use super::file::BackupFile;
use crate::epoch;
use crate::identity::Identity;

/// What was taken into service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredFrom {
    /// Who it is, and where it begins.
    pub becomes: Extent,
    /// How many objects it has.
    pub objects: u64,
    /// Where what was there before is kept, if it is.
    pub kept: Option<String>,
}

/// Reads a backup into a place, as a new epoch whose revisions begin `bump` past all that are known.
///
/// # Errors
/// [`CopyError`]; then nothing has changed there, or, where a target numbers by itself, it is marked as not whole.
pub async fn restore_from(
    file: &Path,
    mut target: Box<dyn CopyTarget>,
    bump: i64,
) -> Result<RestoredFrom, CopyError> {
    let mut backup = BackupFile::open(file)?;
    let header = backup.header().clone();
    let known = target.replaces().map_or((0, 0), |there| (there.identity.epoch, there.revision));
    let failed = |error| CopyError::Format { path: file.to_owned(), error };
    let mut distinct = Distinct::new(header.revision);
    while let Some(mut states) = backup.next_states().map_err(failed)? {
        if !target.numbers_by_itself() {
            distinct.add(&mut states);
        }
        target.add(states).await?;
    }
    let last = distinct.last().unwrap_or(header.revision);
    let next = epoch::after(known.0.max(header.epoch), known.1.max(last), bump);
    let (epoch, revision) = next.ok_or(CopyError::Exhausted)?;
    let becomes =
        Extent { identity: Identity { store_id: header.store_id, epoch }, revision, oldest: revision };
    let Finished { extent, kept } = target.finish(becomes).await?;
    Ok(RestoredFrom { becomes: extent, objects: backup.states(), kept })
}
