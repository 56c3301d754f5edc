//! Content of a portable backup: header, states in key order, archive of past states (optional), end.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::archive::{ArchiveContents, ArchiveCursor, ArchivePart};
use super::block::{BlockKind, BlockReader, BlockWriter, Checksum, FormatError};
use super::error::CopyError;
use super::state::StoredState;
use crate::key::Key;

/// Header of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// ID of the store.
    pub store_id: String,
    /// Epoch of the store.
    pub epoch: i64,
    /// Revision of the backup: it contains exactly the state at this revision.
    pub revision: i64,
    /// Start of the backup in Unix seconds.
    pub created_at: i64,
    /// Version of Portico that wrote the backup.
    pub portico: String,
}

/// Numbers of entries in a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupCounts {
    /// Number of objects.
    pub objects: u64,
    /// Number of archived past states; `None` if there is no archive.
    pub past_states: Option<u64>,
}

/// Last block of a backup, with the counts of its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Trailer {
    states: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    past: Option<u64>,
}

impl From<BackupCounts> for Trailer {
    fn from(BackupCounts { objects, past_states }: BackupCounts) -> Self {
        Self { states: objects, past: past_states }
    }
}

/// Writer of a backup.
pub(crate) struct BackupWriter<W> {
    blocks: BlockWriter<W>,
    counts: BackupCounts,
}

impl<W: Write> BackupWriter<W> {
    pub(crate) fn begin(out: W, header: &Header, with_archive: bool) -> io::Result<Self> {
        let mut blocks = BlockWriter::begin(out, with_archive)?;
        blocks.write(BlockKind::Header, &serde_json::to_vec(header)?)?;
        Ok(Self { blocks, counts: BackupCounts { objects: 0, past_states: with_archive.then_some(0) } })
    }

    /// Continues after the complete blocks that a reader found.
    pub(crate) fn resume(out: W, checksum: Checksum, counts: BackupCounts) -> Self {
        Self { blocks: BlockWriter::resume(out, checksum), counts }
    }

    pub(crate) fn add(&mut self, states: Vec<StoredState>) -> io::Result<()> {
        self.counts.objects += states.len() as u64;
        self.blocks.write(BlockKind::States, &StoredState::encode_all(states))
    }

    /// Adds a part of the archive; all objects must precede it. The first and the last part list the contents of the archive.
    pub(crate) fn add_archive(&mut self, part: ArchivePart) -> io::Result<()> {
        let past_states = self.counts.past_states.get_or_insert_default();
        *past_states += part.states.len() as u64;
        self.blocks.write(BlockKind::Archive, &part.encode())
    }

    /// Writes the end. Returns the counts.
    pub(crate) fn end(mut self) -> io::Result<(W, BackupCounts)> {
        self.blocks.write(BlockKind::End, &serde_json::to_vec(&Trailer::from(self.counts))?)?;
        Ok((self.blocks.into_inner(), self.counts))
    }
}

/// Part of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupPart {
    /// Current objects.
    States(Vec<StoredState>),
    /// Past states.
    Archive(ArchivePart),
}

/// Progress of reading an archive.
#[derive(Clone, Debug)]
pub(crate) struct ArchiveProgress {
    /// Contents of the archive at the start.
    pub(crate) initial_contents: ArchiveContents,
    pub(crate) cursor: ArchiveCursor,
    /// True if the last part was read.
    pub(crate) ended: bool,
}

/// Reader of a backup. Each block is verified before any of it is returned.
pub struct BackupFile<R> {
    blocks: BlockReader<R>,
    header: Header,
    last: Option<Key>,
    counts: BackupCounts,
    archive: Option<ArchiveProgress>,
    ended: bool,
}

impl BackupFile<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// [`CopyError::Format`], [`CopyError::File`].
    pub fn open(path: &Path) -> Result<Self, CopyError> {
        let file = File::open(path).map_err(|error| CopyError::File { path: path.to_owned(), error })?;
        Self::read(BufReader::new(file)).map_err(|error| CopyError::Format { path: path.to_owned(), error })
    }
}

impl<R: Read> BackupFile<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn read(input: R) -> Result<Self, FormatError> {
        let mut blocks = BlockReader::begin(input)?;
        let (kind, bytes) = blocks.next()?;
        let header = serde_json::from_slice(&bytes).ok().filter(|_| kind == BlockKind::Header);
        let header: Header = header.ok_or_else(|| blocks.damage_error("missing header"))?;
        blocks.last_content = "the header is intact".to_owned();
        let counts = BackupCounts { objects: 0, past_states: blocks.has_archive.then_some(0) };
        Ok(Self { blocks, header, last: None, counts, archive: None, ended: false })
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the counts of the content returned so far.
    pub fn counts(&self) -> BackupCounts {
        self.counts
    }

    /// Returns the next part; `None` after the end was read and verified.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn next_part(&mut self) -> Result<Option<BackupPart>, FormatError> {
        while !self.ended {
            let (kind, bytes) = self.blocks.next()?;
            match kind {
                BlockKind::Header => return Err(self.blocks.damage_error("duplicate header")),
                BlockKind::States => return self.states(&bytes).map(BackupPart::States).map(Some),
                BlockKind::Archive => {
                    if let Some(part) = self.archive_part(&bytes)? {
                        return Ok(Some(BackupPart::Archive(part)));
                    }
                }
                BlockKind::End => self.end(&bytes)?,
            }
        }
        Ok(None)
    }

    fn states(&mut self, bytes: &[u8]) -> Result<Vec<StoredState>, FormatError> {
        if self.archive.is_some() {
            return Err(self.blocks.damage_error("objects after the archive"));
        }
        let states = StoredState::decode_all(bytes).map_err(|reason| self.blocks.damage_error(&reason))?;
        states.iter().try_for_each(|state| self.check_order(state))?;
        if let Some(last) = &self.last {
            self.blocks.last_content = format!("intact up to {last}, object {}", self.counts.objects);
        }
        Ok(states)
    }

    /// Decodes a part of the archive. Returns `None` for the first part, which lists the contents at the start.
    fn archive_part(&mut self, bytes: &[u8]) -> Result<Option<ArchivePart>, FormatError> {
        let part = ArchivePart::decode(bytes).map_err(|reason| self.blocks.damage_error(&reason))?;
        let (Some(past_states), false) =
            (&mut self.counts.past_states, self.archive.as_ref().is_some_and(|read| read.ended))
        else {
            return Err(self.blocks.damage_error("missing or duplicate archive"));
        };
        let Some(progress) = &mut self.archive else {
            let Some(initial_contents) = part.contents else {
                return Err(self.blocks.damage_error("the archive has no start"));
            };
            self.archive =
                Some(ArchiveProgress { initial_contents, cursor: ArchiveCursor::default(), ended: false });
            return Ok(None);
        };
        progress
            .cursor
            .advance(&part, self.header.revision)
            .map_err(|reason| self.blocks.damage_error(&reason))?;
        progress.ended = part.contents.is_some();
        *past_states += part.states.len() as u64;
        self.blocks.last_content =
            format!("intact up to {} objects and past state {past_states}", self.counts.objects);
        Ok(Some(part))
    }

    fn end(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        let trailer: Option<Trailer> = serde_json::from_slice(bytes).ok();
        if trailer != Some(Trailer::from(self.counts)) {
            return Err(self.blocks.damage_error("the counts at the end do not match"));
        }
        if self.counts.past_states.is_some() && !self.archive.as_ref().is_some_and(|read| read.ended) {
            return Err(self.blocks.damage_error("the archive is incomplete"));
        }
        self.blocks.expect_end()?;
        self.ended = true;
        Ok(())
    }

    /// Checks the order of a state.
    fn check_order(&mut self, state: &StoredState) -> Result<(), FormatError> {
        let (key, revision) = (&state.key, self.header.revision);
        if self.last.as_ref().is_some_and(|last| last >= key) {
            return Err(self.blocks.damage_error(&format!("{key} is out of order")));
        }
        if state.revision > revision || state.deleted || state.owners.is_none() {
            return Err(self.blocks.damage_error(&format!("{key} is not a state of revision {revision}")));
        }
        self.last = Some(key.clone());
        self.counts.objects += 1;
        Ok(())
    }

    /// Returns the last key returned.
    pub(crate) fn last(&self) -> Option<&Key> {
        self.last.as_ref()
    }

    /// Returns the progress in the archive; `None` before its start.
    pub(crate) fn archive(&self) -> Option<&ArchiveProgress> {
        self.archive.as_ref()
    }

    /// Returns the length of the complete blocks, and their checksum.
    pub(crate) fn complete_prefix(&self) -> (u64, Checksum) {
        self.blocks.complete_prefix()
    }
}

/// Verifies a complete backup. Returns its header and counts.
///
/// # Errors
/// [`CopyError::Format`], [`CopyError::File`].
pub fn check(path: &Path) -> Result<(Header, BackupCounts), CopyError> {
    let mut file = BackupFile::open(path)?;
    let failed = |error| CopyError::Format { path: path.to_owned(), error };
    while file.next_part().map_err(failed)?.is_some() {}
    Ok((file.header.clone(), file.counts))
}

#[cfg(test)]
mod tests;
