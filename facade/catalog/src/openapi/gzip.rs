//! Compression and decompression of documents.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use portico_machinery::Status;

/// Compresses with gzip, at a level suitable for documents that are sent often.
pub(super) fn compress(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::default());
    // Writing to memory does not fail; a failure would result in an empty body.
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    packed.unwrap_or_default().into()
}

pub(super) fn decompress(packed: &[u8]) -> Result<Bytes, Box<Status>> {
    let mut bytes = Vec::with_capacity(packed.len() * 10);
    match GzDecoder::new(packed).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes.into()),
        Err(error) => Err(Box::new(Status::internal(error))),
    }
}
