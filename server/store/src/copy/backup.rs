//! Creates portable backups: the state of one revision, read in pages during concurrent writes, and the archive of states
//! superseded up to it.

use std::io::Write;
use std::path::Path;

use super::archive::{ArchiveContents, ArchiveCursor, ArchivePart};
use super::engine::CopySource;
use super::error::CopyError;
use super::file::{BackupCounts, BackupWriter, Header};
use super::partial::{PartialContent, PartialFile};
use super::store_extent::StoreExtent;
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
pub struct BackupSummary {
    /// Header of the file.
    pub header: Header,
    /// Numbers of objects and past states in the file.
    pub counts: BackupCounts,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of objects that an earlier attempt had read.
    pub resumed_objects: u64,
    /// Reason why an earlier attempt was not resumed, if there was one.
    pub restart_reason: Option<String>,
}

/// Creates a backup, or resumes an interrupted one from `FILE.partial`.
///
/// # Errors
/// [`CopyError`]. The data that was read remains in `FILE.partial` if it can be resumed.
pub async fn back_up(source: &dyn CopySource, backup: &Backup<'_>) -> Result<BackupSummary, CopyError> {
    let extent = source.extent().await?;
    let requested_revision = backup.revision.map(|revision| check_readable(&extent, revision)).transpose()?;
    let contents = archive_contents(source, backup.history).await?;
    let mut partial = PartialFile::open(backup.file)?;
    let (found, restart_reason) = match partial.read_existing()? {
        None => (None, None),
        Some(found) => match resume_obstacle(&found, &extent, requested_revision, contents.is_some()) {
            None => (Some(found), None),
            Some(reason) => (None, Some(reason)),
        },
    };
    let header = match &found {
        Some(found) => found.header.clone(),
        None => Header {
            store_id: extent.identity.store_id,
            epoch: extent.identity.epoch,
            revision: requested_revision.unwrap_or(extent.revision),
            created_at: backup.now,
            portico: backup.portico.to_owned(),
        },
    };
    let counts = match copy(source, &mut partial, &header, found.as_ref(), contents).await {
        Ok(counts) => counts,
        Err(error) => {
            if matches!(error, CopyError::Compacted { .. }) {
                partial.remove();
            }
            return Err(error);
        }
    };
    let (resumed_objects, bytes) = (found.map_or(0, |found| found.counts.objects), partial.publish()?);
    Ok(BackupSummary { header, counts, bytes, resumed_objects, restart_reason })
}

/// Returns the contents of the archive of a source, if there are any and they are requested.
pub(crate) async fn archive_contents(
    source: &dyn CopySource,
    history: bool,
) -> Result<Option<ArchiveContents>, CopyError> {
    if !history {
        return Ok(None);
    }
    let last_part = source.archive(i64::MAX, ArchiveCursor::END).await?;
    Ok(last_part.contents.filter(|contents| !contents.is_empty()))
}

/// Checks that a revision can be read.
pub(crate) fn check_readable(extent: &StoreExtent, revision: i64) -> Result<i64, CopyError> {
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
fn resume_obstacle(
    found: &PartialContent,
    extent: &StoreExtent,
    requested_revision: Option<i64>,
    with_archive: bool,
) -> Option<String> {
    let has_archive = found.counts.past_states.is_some();
    let Header { store_id, epoch, revision, .. } = &found.header;
    let is_same_store = (store_id, *epoch) == (&extent.identity.store_id, extent.identity.epoch);
    match requested_revision {
        _ if !is_same_store => {
            Some(format!("the incomplete backup belongs to store {store_id}, epoch {epoch}"))
        }
        Some(requested) if requested != *revision => {
            Some(format!("the incomplete backup is at revision {revision}"))
        }
        _ if has_archive != with_archive => Some(format!(
            "the incomplete backup was made {} history",
            if has_archive { "with" } else { "without" }
        )),
        // If all objects are present, only the archive is missing.
        _ if found.archive.is_none() && check_readable(extent, *revision).is_err() => {
            Some(format!("the incomplete backup is at revision {revision}, which is no longer retained"))
        }
        _ => None,
    }
}

/// Writes the missing parts. Returns the counts of the complete backup.
async fn copy(
    source: &dyn CopySource,
    partial: &mut PartialFile,
    header: &Header,
    found: Option<&PartialContent>,
    contents: Option<ArchiveContents>,
) -> Result<BackupCounts, CopyError> {
    let path = partial.path().to_owned();
    let failed = |error| CopyError::File { path: path.clone(), error };
    let mut writer = match found {
        Some(found) => partial.resume(found)?,
        None => partial.begin(header, contents.is_some())?,
    };
    let archive = found.and_then(|found| found.archive.clone());
    if archive.is_none() {
        let after = found.and_then(|found| found.last.clone());
        copy_states(source, &mut writer, header.revision, after, &failed).await?;
    }
    match (archive, contents) {
        (Some(archive), _) if archive.ended => {}
        (Some(archive), _) => {
            copy_archive(
                source,
                &mut writer,
                header.revision,
                (archive.initial_contents, archive.cursor),
                &failed,
            )
            .await?;
        }
        (None, Some(first)) => {
            let begin = ArchivePart { contents: Some(first.clone()), ..ArchivePart::default() };
            writer.add_archive(begin).map_err(&failed)?;
            let from = (first, ArchiveCursor::default());
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
        states.retain(|state| !read_only::is_read_only_key(&state.key));
        if let Some(state) = states.iter().find(|state| state.owners.is_none()) {
            return Err(CopyError::Owners(state.key.clone()));
        }
        if !states.is_empty() {
            writer.add(states).map_err(failed)?;
        }
    }
}

/// Writes all past states after a cursor. The last part lists those of `initial_contents` that are complete.
async fn copy_archive(
    source: &dyn CopySource,
    writer: &mut BackupWriter<impl Write>,
    revision: i64,
    (initial_contents, mut cursor): (ArchiveContents, ArchiveCursor),
    failed: &impl Fn(std::io::Error) -> CopyError,
) -> Result<(), CopyError> {
    loop {
        let mut part = source.archive(revision, cursor).await?;
        cursor.advance(&part, revision).map_err(CopyError::Unreadable)?;
        part.contents = part.contents.map(|contents| initial_contents.intersect(contents));
        let is_last = part.contents.is_some();
        writer.add_archive(part).map_err(failed)?;
        if is_last {
            return Ok(());
        }
    }
}
