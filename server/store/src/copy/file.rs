//! A portable backup: its header, its states in key order, its end.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::block::{BlockReader, BlockWriter, FormatError, Kind, Sum};
use super::error::CopyError;
use super::state::StoredState;
use crate::key::Key;

/// What a backup says of itself.
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

/// What the end of a backup says of all before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    states: u64,
}

/// Writes a backup.
pub(crate) struct BackupWriter<W> {
    blocks: BlockWriter<W>,
    states: u64,
}

impl<W: Write> BackupWriter<W> {
    pub(crate) fn begin(out: W, header: &Header) -> io::Result<Self> {
        let mut blocks = BlockWriter::begin(out)?;
        blocks.write(Kind::Header, &serde_json::to_vec(header)?)?;
        Ok(Self { blocks, states: 0 })
    }

    /// Goes on behind what a reader found whole.
    pub(crate) fn resume(out: W, before: Sum, states: u64) -> Self {
        Self { blocks: BlockWriter::resume(out, before), states }
    }

    pub(crate) fn add(&mut self, states: Vec<StoredState>) -> io::Result<()> {
        self.states += states.len() as u64;
        self.blocks.write(Kind::States, &StoredState::encode_all(states))
    }

    /// How many states are in it.
    pub(crate) fn end(mut self) -> io::Result<(W, u64)> {
        let end = serde_json::to_vec(&End { states: self.states })?;
        self.blocks.write(Kind::End, &end)?;
        Ok((self.blocks.into_inner(), self.states))
    }
}

/// Reads a backup, a block at a time; every block is checked before anything of it is shown.
pub struct BackupFile<R> {
    blocks: BlockReader<R>,
    header: Header,
    last: Option<Key>,
    states: u64,
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
        let header: Header = header.ok_or_else(|| blocks.damaged("it has no header"))?;
        blocks.after = "its header is whole".to_owned();
        Ok(Self { blocks, header, last: None, states: 0, ended: false })
    }

    /// What it says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many states were shown so far.
    pub fn states(&self) -> u64 {
        self.states
    }

    /// The next states; none once its end was read and nothing is wrong with it.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn next_states(&mut self) -> Result<Option<Vec<StoredState>>, FormatError> {
        if self.ended {
            return Ok(None);
        }
        let (kind, bytes) = self.blocks.next()?;
        match kind {
            Kind::Header => Err(self.blocks.damaged("it has a second header")),
            Kind::End => {
                let end: Option<End> = serde_json::from_slice(&bytes).ok();
                if end != Some(End { states: self.states }) {
                    return Err(self.blocks.damaged("its end counts other states"));
                }
                self.blocks.end()?;
                self.ended = true;
                Ok(None)
            }
            Kind::States => {
                let states =
                    StoredState::decode_all(&bytes).map_err(|reason| self.blocks.damaged(&reason))?;
                states.iter().try_for_each(|state| self.follows(state))?;
                if let Some(last) = &self.last {
                    self.blocks.after = format!("whole up to {last}, object {}", self.states);
                }
                Ok(Some(states))
            }
        }
    }

    /// Whether a state may come next.
    fn follows(&mut self, state: &StoredState) -> Result<(), FormatError> {
        let (key, revision) = (&state.key, self.header.revision);
        if self.last.as_ref().is_some_and(|last| last >= key) {
            return Err(self.blocks.damaged(&format!("{key} is not where it belongs")));
        }
        if state.revision > revision || state.deleted || state.owners.is_none() {
            return Err(self.blocks.damaged(&format!("{key} is no state of revision {revision}")));
        }
        self.last = Some(key.clone());
        self.states += 1;
        Ok(())
    }

    /// The last key that was shown.
    pub(crate) fn last(&self) -> Option<&Key> {
        self.last.as_ref()
    }

    /// Up to where it is whole, and the checksum there.
    pub(crate) fn whole(&self) -> (u64, Sum) {
        self.blocks.whole()
    }
}

/// Reads a backup to its end; its header and how many objects are in it.
///
/// # Errors
/// [`CopyError::Format`], [`CopyError::File`].
pub fn check(path: &Path) -> Result<(Header, u64), CopyError> {
    let mut file = BackupFile::open(path)?;
    let failed = |error| CopyError::Format { path: path.to_owned(), error };
    while file.next_states().map_err(failed)?.is_some() {}
    Ok((file.header.clone(), file.states))
}

#[cfg(test)]
mod tests;
