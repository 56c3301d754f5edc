//! Makes a portable backup: the state of exactly one revision, read in pages while writes go on.

use std::path::Path;

use super::engine::{CopySource, Extent};
use super::error::CopyError;
use super::file::Header;
use super::partial::{Found, Partial};
use crate::read_only;

/// What is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Backup<'a> {
    /// The file to make.
    pub file: &'a Path,
    /// Of which revision; none: the current one.
    pub revision: Option<i64>,
    /// The time, in Unix seconds.
    pub now: i64,
    /// The version of this program.
    pub portico: &'a str,
}

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupDone {
    /// What the file says of itself.
    pub header: Header,
    /// How many objects are in it.
    pub objects: u64,
    /// Its size.
    pub bytes: u64,
    /// How many objects an earlier try had read already.
    pub resumed: u64,
    /// Why an earlier try was not gone on with, where there was one.
    pub began_anew: Option<String>,
}

/// Makes a backup, or goes on with one that was cut off, of which `FILE.partial` is left.
///
/// # Errors
/// [`CopyError`]. What was read stays in `FILE.partial`, if it is of use.
pub async fn back_up(source: &dyn CopySource, backup: &Backup<'_>) -> Result<BackupDone, CopyError> {
    let extent = source.extent().await?;
    let wanted = backup.revision.map(|revision| readable(&extent, revision)).transpose()?;
    let mut partial = Partial::open(backup.file)?;
    let (found, began_anew) = match partial.found()? {
        None => (None, None),
        Some(found) => match useless(&found, &extent, wanted) {
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
    let objects = match copy(source, &mut partial, &header, found.as_ref()).await {
        Ok(objects) => objects,
        Err(error) => {
            if matches!(error, CopyError::Compacted { .. }) {
                partial.remove();
            }
            return Err(error);
        }
    };
    let (resumed, bytes) = (found.map_or(0, |found| found.states), partial.publish()?);
    Ok(BackupDone { header, objects, bytes, resumed, began_anew })
}

/// A revision that can be read exactly.
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

/// Why what was found cannot be gone on with.
fn useless(found: &Found, extent: &Extent, wanted: Option<i64>) -> Option<String> {
    let Header { store_id, epoch, revision, .. } = &found.header;
    let is_of = (store_id, *epoch) == (&extent.identity.store_id, extent.identity.epoch);
    match wanted {
        _ if !is_of => Some(format!("what was left of an earlier one is of store {store_id}, epoch {epoch}")),
        Some(wanted) if wanted != *revision => {
            Some(format!("what was left of an earlier one is of revision {revision}"))
        }
        _ if readable(extent, *revision).is_err() => Some(format!(
            "what was left of an earlier one is of revision {revision}, which is not kept any more"
        )),
        _ => None,
    }
}

/// Writes what is missing; how many objects are in it then.
async fn copy(
    source: &dyn CopySource,
    partial: &mut Partial,
    header: &Header,
    found: Option<&Found>,
) -> Result<u64, CopyError> {
    let path = partial.path().to_owned();
    let failed = |error| CopyError::File { path: path.clone(), error };
    let mut after = found.and_then(|found| found.last.clone());
    let mut writer = match found {
        Some(found) => partial.resume(found)?,
        None => partial.begin(header)?,
    };
    loop {
        let mut states = source.states(header.revision, after.as_ref()).await?;
        let Some(last) = states.last() else { break };
        after = Some(last.key.clone());
        states.retain(|state| !read_only::is_switch(&state.key));
        if let Some(state) = states.iter().find(|state| state.owners.is_none()) {
            return Err(CopyError::Owners(state.key.clone()));
        }
        if !states.is_empty() {
            writer.add(states).map_err(failed)?;
        }
    }
    let (out, objects) = writer.end().map_err(failed)?;
    out.into_inner().map_err(|error| failed(error.into_error()))?;
    Ok(objects)
}
