//! Header compression: one zlib stream over all header blocks of a direction, flushed after each block.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

use crate::dictionary::{DICTIONARY, DICTIONARY_ADLER32};
use crate::error::SpdyError;

/// Window of the compressor: large enough for the dictionary, and small because headers are short.
const WINDOW_BITS: u8 = 11;
/// Number of bytes by which buffers grow.
const GROWTH_BYTES: usize = 512;

/// Compressor of sent headers.
pub(crate) struct Compressor(Compress);

impl Compressor {
    pub(crate) fn new() -> Result<Self, SpdyError> {
        let mut compress = Compress::new_with_window_bits(Compression::best(), true, WINDOW_BITS);
        compress.set_dictionary(&DICTIONARY).map_err(|_| SpdyError::Compression)?;
        Ok(Self(compress))
    }

    pub(crate) fn compress_block(&mut self, mut plain: &[u8]) -> Result<Vec<u8>, SpdyError> {
        let mut out = Vec::new();
        loop {
            out.reserve(GROWTH_BYTES);
            let (room, before) = (out.capacity() - out.len(), (self.0.total_in(), out.len()));
            let flushed = self.0.compress_vec(plain, &mut out, FlushCompress::Sync);
            flushed.map_err(|_| SpdyError::Compression)?;
            plain = plain.get(consumed_bytes(before.0, self.0.total_in())..).unwrap_or_default();
            // A flush is complete if the output buffer was not filled.
            if plain.is_empty() && out.len() - before.1 < room {
                return Ok(out);
            }
        }
    }
}

/// Decompressor of received headers.
pub(crate) struct Decompressor(Decompress);

impl Decompressor {
    pub(crate) fn new() -> Self {
        Self(Decompress::new(true))
    }

    /// Decompresses a complete block of at most `max` bytes.
    pub(crate) fn decompress_block(
        &mut self,
        mut compressed: &[u8],
        max: usize,
    ) -> Result<Vec<u8>, SpdyError> {
        let mut out = Vec::new();
        loop {
            out.reserve(GROWTH_BYTES);
            let (room, before) = (out.capacity() - out.len(), (self.0.total_in(), out.len()));
            let result = self.0.decompress_vec(compressed, &mut out, FlushDecompress::Sync);
            compressed = compressed.get(consumed_bytes(before.0, self.0.total_in())..).unwrap_or_default();
            match result {
                Ok(_) => {}
                Err(error) if error.needs_dictionary() == Some(DICTIONARY_ADLER32) => {
                    self.0.set_dictionary(&DICTIONARY).map_err(|_| SpdyError::Compression)?;
                    continue;
                }
                Err(_) => return Err(SpdyError::Compression),
            }
            let produced = out.len() - before.1;
            if out.len() > max {
                return Err(SpdyError::TooLarge);
            }
            if produced == room {
                continue;
            }
            // Input that is left when no more output is produced lies after the end of the stream.
            return if compressed.is_empty() { Ok(out) } else { Err(SpdyError::Compression) };
        }
    }
}

/// Returns the number of consumed input bytes from two totals; a block is always smaller than `usize::MAX`.
fn consumed_bytes(before: u64, after: u64) -> usize {
    usize::try_from(after - before).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_blocks_round_trip() {
        let (mut to, mut from) = (Compressor::new().unwrap(), Decompressor::new());
        for plain in [&b"\0\0\0\x01"[..], b"", &[7; 40_000], b"\0\0\0\x01", DICTIONARY.as_slice()] {
            let compressed = to.compress_block(plain).unwrap();
            assert_eq!(from.decompress_block(&compressed, 40_000), Ok(plain.to_vec()));
        }
    }

    #[test]
    fn a_small_block_that_becomes_a_large_one_is_refused() {
        let compressed = Compressor::new().unwrap().compress_block(&vec![0; 1 << 20]).unwrap();
        assert!(compressed.len() < 4096);
        assert_eq!(Decompressor::new().decompress_block(&compressed, 64 << 10), Err(SpdyError::TooLarge));
    }

    #[test]
    fn nonsense_and_other_dictionaries_are_refused() {
        let mut other = Compress::new(Compression::fast(), true);
        other.set_dictionary(b"another dictionary").unwrap();
        let mut block = Vec::with_capacity(100);
        other.compress_vec(b"text", &mut block, FlushCompress::Sync).unwrap();
        for nonsense in [block.as_slice(), b"nonsense", b"\x78\xbb\0\0\0\0"] {
            assert_eq!(
                Decompressor::new().decompress_block(nonsense, 1000),
                Err(SpdyError::Compression),
                "{nonsense:?}"
            );
        }
    }
}
