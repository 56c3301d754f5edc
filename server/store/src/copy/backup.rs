//! Creates portable backups: the state of one revision, read in pages during concurrent writes, and the archive of states
//! superseded up to it.

use std::io::Write;
use std::path::Path;

use super::archive::{ArchiveAt, ArchivePart, Kept};
use super::engine::CopySource;
use super::error::CopyError;
use super::extent::Extent;
use super::file::{BackupWriter, Counts, Header};
use super::partial::{Found, Partial};
use crate::key::Key;
use crate::read_only;

/// Parameters of a backup.
#[derive(Clone, Copy, Debug)]
pub struct Backup<'a> {
    /// File to create.
    pub file: &'a Path,
    /// Revision of the backup; `None` for the current one.
    pub revision: Option<i64>,
    /// True to include past states of the archive.
    pub history: bool,
    /// Current time in Unix seconds.
    pub now: i64,
    /// Version of this program.
    pub portico: &'a str,
}

/// Result of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupDone {
    /// Header of the file.
    pub header: Header,
    /// Numbers of objects and past states in the file.
    pub counts: Counts,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of objects that an earlier attempt had read.
    pub resumed: u64,
    /// Reason why an earlier attempt was not resumed, if there was one.
    pub began_anew: Option<String>,
}

/// Creates a backup, or resumes an interrupted one from `FILE.partial`.
///
/// # Errors
/// [`CopyError`]. The data that was read remains in `FILE.partial` if it can be resumed.
pub async fn back_up(source: &dyn CopySource, backup: &Backup<'_>) -> Result<BackupDone, CopyError> {
    let extent = source.extent().await?;
    let wanted = backup.revision.map(|revision| readable(&extent, revision)).transpose()?;
    let kept = archive_of(source, backup.history).await?;
    let mut partial = Partial::open(backup.file)?;
    let (found, began_anew) = match partial.found()? {
        None => (None, None),
        Some(found) => match useless(&found, &extent, wanted, kept.is_some()) {
            None => (Some(found), None),
            Some(why) => (None, Some(why)),
        },
    };
    let header = match &found {
        Some(found) => found.header.clone(),
        None => Header {
            store_id: extent.identity.store_id,
            epoch: extent.identity.epoch,
            revision: wanted.unwrap_or(extent.revision),
            created_at: backup.now,
            portico: backup.portico.to_owned(),
        },
    };
    let counts = match copy(source, &mut partial, &header, found.as_ref(), kept).await {
        Ok(counts) => counts,
        Err(error) => {
            if matches!(error, CopyError::Compacted { .. }) {
                partial.remove();
            }
            return Err(error);
        }
    };
    let (resumed, bytes) = (found.map_or(0, |found| found.counts.objects), partial.publish()?);
    Ok(BackupDone { header, counts, bytes, resumed, began_anew })
}

/// Returns the contents of the archive of a source, if there are any and they are requested.
pub(crate) async fn archive_of(source: &dyn CopySource, wanted: bool) -> Result<Option<Kept>, CopyError> {
    if !wanted {
        return Ok(None);
    }
    let end = source.archive(i64::MAX, ArchiveAt::END).await?;
    Ok(end.kept.filter(|kept| !kept.is_empty()))
}

/// Checks that a revision can be read.
pub(crate) fn readable(extent: &Extent, revision: i64) -> Result<i64, CopyError> {
    match revision {
        revision if revision > extent.revision => {
            Err(CopyError::Future { revision, current: extent.revision })
        }
        revision if revision < extent.oldest || revision <= 0 => {
            Err(CopyError::Compacted { revision, oldest: extent.oldest })
        }
        revision => Ok(revision),
    }
}

/// Returns the reason why a partial backup cannot be resumed; `None` if it can.
fn useless(found: &Found, extent: &Extent, wanted: Option<i64>, with_archive: bool) -> Option<String> {
    let has_archive = found.counts.past.is_some();
    let Header { store_id, epoch, revision, .. } = &found.header;
    let is_of = (store_id, *epoch) == (&extent.identity.store_id, extent.identity.epoch);
    match wanted {
        _ if !is_of => Some(format!("the incomplete backup belongs to store {store_id}, epoch {epoch}")),
        Some(wanted) if wanted != *revision => {
            Some(format!("the incomplete backup is at revision {revision}"))
        }
        _ if has_archive != with_archive => Some(format!(
            "the incomplete backup was made {} history",
            if has_archive { "with" } else { "without" }
        )),
        // If all objects are present, only the archive is missing.
        _ if found.archive.is_none() && readable(extent, *revision).is_err() => {
            Some(format!("the incomplete backup is at revision {revision}, which is no longer retained"))
        }
        _ => None,
    }
}

/// Writes the missing parts. Returns the counts of the complete backup.
async fn copy(
    source: &dyn CopySource,
    partial: &mut Partial,
    header: &Header,
    found: Option<&Found>,
    kept: Option<Kept>,
) -> Result<Counts, CopyError> {
    let path = partial.path().to_owned();
    let failed = |error| CopyError::File { path: path.clone(), error };
    let mut writer = match found {
        Some(found) => partial.resume(found)?,
        None => partial.begin(header, kept.is_some())?,
    };
    let archive = found.and_then(|found| found.archive.clone());
    if archive.is_none() {
        let after = found.and_then(|found| found.last.clone());
        copy_states(source, &mut writer, header.revision, after, &failed).await?;
    }
    match (archive, kept) {
        (Some(archive), _) if archive.ended => {}
        (Some(archive), _) => {
            copy_archive(source, &mut writer, header.revision, (archive.first, archive.at), &failed).await?;
        }
        (None, Some(first)) => {
            let begin = ArchivePart { kept: Some(first.clone()), ..ArchivePart::default() };
            writer.add_archive(begin).map_err(&failed)?;
            let from = (first, ArchiveAt::default());
            copy_archive(source, &mut writer, header.revision, from, &failed).await?;
        }
        (None, None) => {}
    }
    let (out, counts) = writer.end().map_err(&failed)?;
    out.into_inner().map_err(|error| failed(error.into_error()))?;
    Ok(counts)
}

/// Writes all objects after a key.
async fn copy_states(
    source: &dyn CopySource,
    writer: &mut BackupWriter<impl Write>,
    revision: i64,
    mut after: Option<Key>,
    failed: &impl Fn(std::io::Error) -> CopyError,
) -> Result<(), CopyError> {
    loop {
        let mut states = source.states(revision, after.as_ref()).await?;
        let Some(last) = states.last() else { return Ok(()) };
        after = Some(last.key.clone());
        states.retain(|state| !read_only::is_switch(&state.key));
        if let Some(state) = states.iter().find(|state| state.owners.is_none()) {
            return Err(CopyError::Owners(state.key.clone()));
        }
        if !states.is_empty() {
            writer.add(states).map_err(failed)?;
        }
    }
}

/// Writes all past states after a cursor. The last part lists the contents of `first` that are complete.
async fn copy_archive(
    source: &dyn CopySource,
    writer: &mut BackupWriter<impl Write>,
    revision: i64,
    (first, mut at): (Kept, ArchiveAt),
    failed: &impl Fn(std::io::Error) -> CopyError,
) -> Result<(), CopyError> {
    loop {
        let mut part = source.archive(revision, at).await?;
        at.pass(&part, revision).map_err(CopyError::Unreadable)?;
        part.kept = part.kept.map(|kept| first.until_the_end(kept));
        let is_last = part.kept.is_some();
        writer.add_archive(part).map_err(failed)?;
        if is_last {
            return Ok(());
        }
    }
}
