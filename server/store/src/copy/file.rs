//! A portable backup: its header, its states in key order, then, where it has one, the archive of past states, its end.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::archive::{ArchiveAt, ArchivePart, Kept};
use super::block::{BlockReader, BlockWriter, FormatError, Kind, Sum};
use super::error::CopyError;
use super::state::StoredState;
use crate::key::Key;

/// What a backup contains about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// The store's id.
    pub store_id: String,
    /// Its epoch.
    pub epoch: i64,
    /// Everything up to this revision is in it, and nothing after it.
    pub revision: i64,
    /// When it was begun, in Unix seconds.
    pub created_at: i64,
    /// The version of Portico that wrote it.
    pub portico: String,
}

/// What a backup has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects.
    pub objects: u64,
    /// Past states of the archive; none where it has no archive.
    pub past: Option<u64>,
}

/// What the end of a backup contains about all before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    states: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    past: Option<u64>,
}

impl From<Counts> for End {
    fn from(Counts { objects, past }: Counts) -> Self {
        Self { states: objects, past }
    }
}

/// Writes a backup.
pub(crate) struct BackupWriter<W> {
    blocks: BlockWriter<W>,
    counts: Counts,
}

impl<W: Write> BackupWriter<W> {
    pub(crate) fn begin(out: W, header: &Header, with_archive: bool) -> io::Result<Self> {
        let mut blocks = BlockWriter::begin(out, with_archive)?;
        blocks.write(Kind::Header, &serde_json::to_vec(header)?)?;
        Ok(Self { blocks, counts: Counts { objects: 0, past: with_archive.then_some(0) } })
    }

    /// Goes on behind what a reader found whole.
    pub(crate) fn resume(out: W, before: Sum, counts: Counts) -> Self {
        Self { blocks: BlockWriter::resume(out, before), counts }
    }

    pub(crate) fn add(&mut self, states: Vec<StoredState>) -> io::Result<()> {
        self.counts.objects += states.len() as u64;
        self.blocks.write(Kind::States, &StoredState::encode_all(states))
    }

    /// Of a backup with an archive, behind all states. The first part lists what is kept, and so does the last one.
    pub(crate) fn add_archive(&mut self, part: ArchivePart) -> io::Result<()> {
        let past = self.counts.past.get_or_insert_default();
        *past += part.states.len() as u64;
        self.blocks.write(Kind::Archive, &part.encode())
    }

    /// What is in it.
    pub(crate) fn end(mut self) -> io::Result<(W, Counts)> {
        self.blocks.write(Kind::End, &serde_json::to_vec(&End::from(self.counts))?)?;
        Ok((self.blocks.into_inner(), self.counts))
    }
}

/// A part of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupPart {
    /// Objects.
    States(Vec<StoredState>),
    /// Past states.
    Archive(ArchivePart),
}

/// How far an archive is read.
#[derive(Clone, Debug)]
pub(crate) struct ArchiveRead {
    /// What was kept when it was begun.
    pub(crate) first: Kept,
    pub(crate) at: ArchiveAt,
    /// Whether its last part is read.
    pub(crate) ended: bool,
}

/// Reads a backup, a block at a time; every block is checked before anything of it is shown.
pub struct BackupFile<R> {
    blocks: BlockReader<R>,
    header: Header,
    last: Option<Key>,
    counts: Counts,
    archive: Option<ArchiveRead>,
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
        let header = serde_json::from_slice(&bytes).ok().filter(|_| kind == Kind::Header);
        let header: Header = header.ok_or_else(|| blocks.damaged("missing header"))?;
        blocks.after = "the header is intact".to_owned();
        let counts = Counts { objects: 0, past: blocks.with_archive.then_some(0) };
        Ok(Self { blocks, header, last: None, counts, archive: None, ended: false })
    }

    /// What it contains about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How much was shown so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The next part; none once its end was read and nothing is wrong with it.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn next_part(&mut self) -> Result<Option<BackupPart>, FormatError> {
        while !self.ended {
            let (kind, bytes) = self.blocks.next()?;
            match kind {
                Kind::Header => return Err(self.blocks.damaged("duplicate header")),
                Kind::States => return self.states(&bytes).map(BackupPart::States).map(Some),
                Kind::Archive => {
                    if let Some(part) = self.archive_part(&bytes)? {
                        return Ok(Some(BackupPart::Archive(part)));
                    }
                }
                Kind::End => self.end(&bytes)?,
            }
        }
        Ok(None)
    }

    fn states(&mut self, bytes: &[u8]) -> Result<Vec<StoredState>, FormatError> {
        if self.archive.is_some() {
            return Err(self.blocks.damaged("objects after the archive"));
        }
        let states = StoredState::decode_all(bytes).map_err(|reason| self.blocks.damaged(&reason))?;
        states.iter().try_for_each(|state| self.follows(state))?;
        if let Some(last) = &self.last {
            self.blocks.after = format!("intact up to {last}, object {}", self.counts.objects);
        }
        Ok(states)
    }

    /// None of the first part, which lists what was kept at the beginning.
    fn archive_part(&mut self, bytes: &[u8]) -> Result<Option<ArchivePart>, FormatError> {
        let part = ArchivePart::decode(bytes).map_err(|reason| self.blocks.damaged(&reason))?;
        let (Some(past), false) =
            (&mut self.counts.past, self.archive.as_ref().is_some_and(|read| read.ended))
        else {
            return Err(self.blocks.damaged("missing or duplicate archive"));
        };
        let Some(read) = &mut self.archive else {
            let Some(first) = part.kept else {
                return Err(self.blocks.damaged("the archive has no start"));
            };
            self.archive = Some(ArchiveRead { first, at: ArchiveAt::default(), ended: false });
            return Ok(None);
        };
        read.at.pass(&part, self.header.revision).map_err(|reason| self.blocks.damaged(&reason))?;
        read.ended = part.kept.is_some();
        *past += part.states.len() as u64;
        self.blocks.after = format!("intact up to {} objects and past state {past}", self.counts.objects);
        Ok(Some(part))
    }

    fn end(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        let end: Option<End> = serde_json::from_slice(bytes).ok();
        if end != Some(End::from(self.counts)) {
            return Err(self.blocks.damaged("the counts at the end do not match"));
        }
        if self.counts.past.is_some() && !self.archive.as_ref().is_some_and(|read| read.ended) {
            return Err(self.blocks.damaged("the archive is incomplete"));
        }
        self.blocks.end()?;
        self.ended = true;
        Ok(())
    }

    /// Whether a state may come next.
    fn follows(&mut self, state: &StoredState) -> Result<(), FormatError> {
        let (key, revision) = (&state.key, self.header.revision);
        if self.last.as_ref().is_some_and(|last| last >= key) {
            return Err(self.blocks.damaged(&format!("{key} is out of order")));
        }
        if state.revision > revision || state.deleted || state.owners.is_none() {
            return Err(self.blocks.damaged(&format!("{key} is not a state of revision {revision}")));
        }
        self.last = Some(key.clone());
        self.counts.objects += 1;
        Ok(())
    }

    /// The last key that was shown.
    pub(crate) fn last(&self) -> Option<&Key> {
        self.last.as_ref()
    }

    /// How far its archive was shown; none before it.
    pub(crate) fn archive(&self) -> Option<&ArchiveRead> {
        self.archive.as_ref()
    }

    /// Up to where it is whole, and the checksum there.
    pub(crate) fn whole(&self) -> (u64, Sum) {
        self.blocks.whole()
    }
}

/// Reads a backup to its end; its header and what is in it.
///
/// # Errors
/// [`CopyError::Format`], [`CopyError::File`].
pub fn check(path: &Path) -> Result<(Header, Counts), CopyError> {
    let mut file = BackupFile::open(path)?;
    let failed = |error| CopyError::Format { path: path.to_owned(), error };
    while file.next_part().map_err(failed)?.is_some() {}
    Ok((file.header.clone(), file.counts))
}

#[cfg(test)]
mod tests;
