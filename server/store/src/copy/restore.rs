//! Takes a portable backup into service, as a new epoch.

use std::path::Path;

use super::engine::{CopyTarget, Extent};
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
/// [`CopyError`]; then nothing has changed there.
pub async fn restore_from(
    file: &Path,
    mut target: Box<dyn CopyTarget>,
    bump: i64,
) -> Result<RestoredFrom, CopyError> {
    let mut backup = BackupFile::open(file)?;
    let header = backup.header().clone();
    let known = target.replaces().map_or((0, 0), |there| (there.identity.epoch, there.revision));
    let next = epoch::after(known.0.max(header.epoch), known.1.max(header.revision), bump);
    let (epoch, revision) = next.ok_or(CopyError::Exhausted)?;
    let failed = |error| CopyError::Format { path: file.to_owned(), error };
    while let Some(states) = backup.next_states().map_err(failed)? {
        target.add(states).await?;
    }
    let becomes =
        Extent { identity: Identity { store_id: header.store_id, epoch }, revision, oldest: revision };
    let kept = target.finish(becomes.clone()).await?;
    Ok(RestoredFrom { becomes, objects: backup.states(), kept })
}
