//! Framing of a portable backup: a line with name and version, then blocks, each with a checksum of itself and
//! of everything before it.
//!
//! The line is `PORTICO-BACKUP 1\n` (2 if past states follow the objects). Each block consists of kind (1 byte), unpacked
//! length (4 bytes, big-endian), packed length (4 bytes), packed content (raw deflate), and the SHA-256 (32 bytes) of the
//! previous checksum, kind, lengths and packed content. The first "previous checksum" is that of the line. A changed, missing,
//! repeated or moved block is therefore detected at its position.

use std::io::{self, Read, Write};

use aws_lc_rs::digest::{Context, SHA256};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use portico_gostd::os::error_text;

/// Start of every backup; a version and a newline follow.
const MAGIC: &[u8] = b"PORTICO-BACKUP ";
/// Newest version of the format: with an archive of past states.
const VERSION: u32 = WITH_ARCHIVE;
/// Version with objects only: used if there is no archive, so that every portico can restore it.
const OBJECTS_ONLY: u32 = 1;
/// Version with objects followed by an archive.
const WITH_ARCHIVE: u32 = 2;
/// Maximum number of digits of a version.
const VERSION_DIGITS: usize = 6;
/// Start of a SQLite file.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";
/// Size of one block in a backup file.
///
/// Limit (Storage and watches, bytes): the file is invalid.
const MAX_BLOCK: usize = 16 << 20;
const HEAD_LENGTH: usize = 9;
const CHECKSUM_LENGTH: usize = 32;

/// Reason why a file is not a readable backup.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The file has another format.
    #[error("not a Portico backup")]
    Foreign,
    /// The file is a SQLite database.
    #[error("a SQLite file, not a portable backup")]
    Sqlite,
    /// The file was written by a newer Portico.
    #[error("format version {found} is not supported, this portico supports {VERSION}: use a newer portico")]
    TooNew {
        /// Version of the format.
        found: u32,
    },
    /// The file is truncated.
    #[error("truncated at byte {at}: {after}")]
    Truncated {
        /// Offset of the end.
        at: u64,
        /// Content before the end.
        after: String,
    },
    /// Part of the file differs from what was written.
    #[error("damaged between bytes {from} and {to}: {reason}; {after}")]
    Damaged {
        /// Offset of the start of the block.
        from: u64,
        /// Offset up to which the block was read.
        to: u64,
        reason: String,
        /// Content before the block.
        after: String,
    },
    /// The file cannot be read.
    #[error("{}", error_text(.0))]
    Io(#[from] io::Error),
}

/// Kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Header,
    States,
    Archive,
    End,
}

impl BlockKind {
    fn byte(self) -> u8 {
        match self {
            Self::Header => b'H',
            Self::States => b'S',
            Self::Archive => b'A',
            Self::End => b'E',
        }
    }

    fn of(byte: u8) -> Option<Self> {
        [Self::Header, Self::States, Self::Archive, Self::End].into_iter().find(|kind| kind.byte() == byte)
    }
}

/// Checksum of everything up to a position.
pub(crate) type Checksum = [u8; CHECKSUM_LENGTH];

fn checksum(parts: &[&[u8]]) -> Checksum {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    let mut sum = [0; CHECKSUM_LENGTH];
    sum.copy_from_slice(context.finish().as_ref());
    sum
}

fn first_line(version: u32) -> Vec<u8> {
    [MAGIC, version.to_string().as_bytes(), b"\n"].concat()
}

/// Writer of blocks.
pub(crate) struct BlockWriter<W> {
    out: W,
    previous_checksum: Checksum,
}

impl<W: Write> BlockWriter<W> {
    /// Starts a new backup, with objects only or with an archive.
    pub(crate) fn begin(mut out: W, with_archive: bool) -> io::Result<Self> {
        let line = first_line(if with_archive { WITH_ARCHIVE } else { OBJECTS_ONLY });
        out.write_all(&line)?;
        Ok(Self { out, previous_checksum: checksum(&[&line]) })
    }

    /// Continues after the content with this checksum.
    pub(crate) fn resume(out: W, previous_checksum: Checksum) -> Self {
        Self { out, previous_checksum }
    }

    pub(crate) fn write(&mut self, kind: BlockKind, bytes: &[u8]) -> io::Result<()> {
        let too_large = || io::Error::other("a block is too large");
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(bytes)?;
        let packed = packed.finish()?;
        if bytes.len().max(packed.len()) > MAX_BLOCK {
            return Err(too_large());
        }
        let length = |length: usize| u32::try_from(length).map(u32::to_be_bytes).map_err(|_| too_large());
        let head = [&[kind.byte()][..], &length(bytes.len())?, &length(packed.len())?].concat();
        self.previous_checksum = checksum(&[&self.previous_checksum, &head, &packed]);
        self.out.write_all(&head)?;
        self.out.write_all(&packed)?;
        self.out.write_all(&self.previous_checksum)
    }

    pub(crate) fn into_inner(self) -> W {
        self.out
    }
}

/// Reader of blocks.
pub(crate) struct BlockReader<R> {
    input: R,
    previous_checksum: Checksum,
    /// True if an archive follows the objects.
    pub(crate) has_archive: bool,
    /// Number of bytes up to the end of the last complete block.
    complete_bytes: u64,
    /// Number of bytes read.
    offset: u64,
    /// Description of the last content read, for messages.
    pub(crate) last_content: String,
}

impl<R: Read> BlockReader<R> {
    /// Starts reading. Fails if the input is not a backup.
    pub(crate) fn begin(input: R) -> Result<Self, FormatError> {
        let last_content = "no content".to_owned();
        let mut reader = Self {
            input,
            previous_checksum: [0; CHECKSUM_LENGTH],
            has_archive: false,
            complete_bytes: 0,
            offset: 0,
            last_content,
        };
        let mut read = Vec::new();
        while read.last() != Some(&b'\n') && read.len() < MAGIC.len() + VERSION_DIGITS + 1 {
            let mut byte = [0];
            if reader.input.read(&mut byte)? == 0 {
                break;
            }
            read.push(byte[0]);
        }
        let found = version(&read)?;
        if found > VERSION {
            return Err(FormatError::TooNew { found });
        }
        reader.has_archive = found >= WITH_ARCHIVE;
        (reader.previous_checksum, reader.offset, reader.complete_bytes) =
            (checksum(&[&read]), read.len() as u64, read.len() as u64);
        Ok(reader)
    }

    /// Returns the next block. The end of the input is an error if another block must follow.
    pub(crate) fn next(&mut self) -> Result<(BlockKind, Vec<u8>), FormatError> {
        let head: [u8; HEAD_LENGTH] = self.read_array()?;
        let Some(kind) = BlockKind::of(head[0]) else {
            return Err(self.damage_error("unknown block type"));
        };
        let length = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (bytes, packed) = (length(1) as usize, length(5) as usize);
        if bytes.max(packed) > MAX_BLOCK {
            return Err(self.damage_error("invalid block length"));
        }
        let mut content = vec![0; packed];
        self.read(&mut content)?;
        let found: Checksum = self.read_array()?;
        let expected = checksum(&[&self.previous_checksum, &head, &content]);
        if found != expected {
            return Err(self.damage_error("checksum mismatch"));
        }
        let mut unpacked = Vec::with_capacity(bytes);
        let unpacking = DeflateDecoder::new(&content[..]).take(bytes as u64 + 1).read_to_end(&mut unpacked);
        if unpacking.is_err() || unpacked.len() != bytes {
            return Err(self.damage_error("cannot decompress a block"));
        }
        self.previous_checksum = expected;
        self.complete_bytes = self.offset;
        Ok((kind, unpacked))
    }

    /// Checks that no data follows.
    pub(crate) fn expect_end(&mut self) -> Result<(), FormatError> {
        match self.input.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(self.damage_error("data after the end")),
        }
    }

    /// Returns the length of the complete blocks, and their checksum.
    pub(crate) fn complete_prefix(&self) -> (u64, Checksum) {
        (self.complete_bytes, self.previous_checksum)
    }

    pub(crate) fn damage_error(&self, reason: &str) -> FormatError {
        let (from, to) = (self.complete_bytes, self.offset);
        FormatError::Damaged { from, to, reason: reason.to_owned(), after: self.last_content.clone() }
    }

    fn read_array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut bytes = [0; N];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), FormatError> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.input.read(&mut bytes[filled..]) {
                Ok(0) => {
                    return Err(FormatError::Truncated { at: self.offset, after: self.last_content.clone() });
                }
                Ok(read) => (filled, self.offset) = (filled + read, self.offset + read as u64),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FormatError::Io(error)),
            }
        }
        Ok(())
    }
}

/// Returns the version from the first line.
fn version(line: &[u8]) -> Result<u32, FormatError> {
    if !line.is_empty() && (line.starts_with(SQLITE_MAGIC) || SQLITE_MAGIC.starts_with(line)) {
        return Err(FormatError::Sqlite);
    }
    let Some(rest) = line.strip_prefix(MAGIC) else { return Err(FormatError::Foreign) };
    let Some(digits) = rest.strip_suffix(b"\n") else {
        let after = "the first line is incomplete".to_owned();
        return Err(FormatError::Truncated { at: line.len() as u64, after });
    };
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    // A version has exactly one valid spelling.
    number
        .filter(|number: &u32| *number > 0 && number.to_string().as_bytes() == digits)
        .ok_or(FormatError::Foreign)
}
