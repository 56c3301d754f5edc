//! Detects damage in a write-ahead log. SQLite treats the first invalid frame as the end of the log, and silently loses the rest.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

/// First word of a log; its last bit is set if checksums use big-endian words.
const MAGIC: u32 = 0x377f_0682;
/// Size of a database page in bytes; also the unit of the size limit.
pub(super) const PAGE_BYTES: u64 = 4_096;
/// Sizes of the header of a log, of the header of a frame, and of a frame with its page, in bytes.
pub(super) const HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;
pub(super) const FRAME_BYTES: u64 = FRAME_HEADER_BYTES + PAGE_BYTES;
/// Bytes that checksums cover: of the header of the log, and of the header of a frame.
const SUMMED_HEADER: usize = 24;
const SUMMED_FRAME: usize = 8;
const MAX_PAGE_BYTES: u64 = 65_536;

/// SQLite's checksum. That of a frame continues the checksum of the previous frame.
#[derive(Clone, Copy, PartialEq, Eq)]
struct WalChecksum(u32, u32);

impl WalChecksum {
    fn read(bytes: &[u8], offset: usize) -> Self {
        Self(word(bytes, offset), word(bytes, offset + 4))
    }

    fn extend(self, bytes: &[u8], big_endian: bool) -> Self {
        let (Self(mut a, mut b), mut words) = (self, bytes.chunks_exact(4));
        let mut next = || {
            let word = words.next()?.try_into().ok()?;
            Some(if big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
        };
        while let (Some(first), Some(second)) = (next(), next()) {
            a = a.wrapping_add(first).wrapping_add(b);
            b = b.wrapping_add(second).wrapping_add(a);
        }
        Self(a, b)
    }
}

fn word(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..offset + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// Returns true if a damaged frame is followed by durable transactions. SQLite begins a transaction after the previous one is on
/// disk, so a valid frame after the end of the damaged transaction proves that the damage is not the result of a crash. Blocks.
pub(super) fn has_lost_commits(log: &Path) -> io::Result<bool> {
    let mut log = match File::open(log) {
        Ok(log) => BufReader::with_capacity(1 << 20, log),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut header = [0; HEADER_BYTES as usize];
    if !fill(&mut log, &mut header)? {
        return Ok(false);
    }
    let mut walk = FrameReader::new(&header);
    let mut frame = vec![0; FRAME_HEADER_BYTES as usize + walk.page_bytes];
    while fill(&mut log, &mut frame)? {
        if walk.finds_lost_commit(&frame) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Fills the buffer. Returns false at the end of the file.
fn fill(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reader of the frames of a log.
struct FrameReader {
    page_bytes: usize,
    big_endian: bool,
    /// Salts of the frames of this log; frames of an earlier log in the same file have others. If the header of the log is
    /// damaged, the salts of its first frame.
    salts: Option<[u8; 8]>,
    /// Checksum of the previous frame.
    checksum: WalChecksum,
    /// True if every frame so far is valid.
    is_intact: bool,
    /// True if the transaction of the first damaged frame has ended.
    has_ended: bool,
}

impl FrameReader {
    fn new(header: &[u8]) -> Self {
        let magic = word(header, 0);
        let (big_endian, page_bytes) = (magic & 1 == 1, u64::from(word(header, 8)));
        let checksum = WalChecksum::read(header, SUMMED_HEADER);
        let is_intact = magic & !1 == MAGIC
            && (512..=MAX_PAGE_BYTES).contains(&page_bytes)
            && WalChecksum(0, 0).extend(&header[..SUMMED_HEADER], big_endian) == checksum;
        if !is_intact {
            let (page_bytes, big_endian) = (PAGE_BYTES as usize, cfg!(target_endian = "big"));
            return Self { page_bytes, big_endian, salts: None, checksum, is_intact, has_ended: true };
        }
        let salts = header[16..24].try_into().ok();
        Self { page_bytes: page_bytes as usize, big_endian, salts, checksum, is_intact, has_ended: false }
    }

    /// Reads the next frame. Returns true if it shows that an earlier transaction is damaged and was durable.
    fn finds_lost_commit(&mut self, frame: &[u8]) -> bool {
        let (head, page) = frame.split_at(FRAME_HEADER_BYTES as usize);
        let salts: [u8; 8] = head[8..16].try_into().unwrap_or_default();
        let is_of_log = *self.salts.get_or_insert(salts) == salts && salts != [0; 8];
        let stored = WalChecksum::read(head, 16);
        let sum = self.checksum.extend(&head[..SUMMED_FRAME], self.big_endian);
        let is_right = is_of_log && sum.extend(page, self.big_endian) == stored;
        let (was_whole, had_ended) = (self.is_intact, self.has_ended);
        self.checksum = stored;
        self.is_intact &= is_right;
        let is_commit = is_of_log && word(head, 4) != 0;
        self.has_ended |= is_commit && !self.is_intact && (is_right || was_whole);
        !was_whole && had_ended && is_right
    }
}
