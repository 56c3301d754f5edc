//! Documents, compressed and back.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use portico_machinery::Status;

/// Gzip at a level that pays for documents sent often.
pub(super) fn compress(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::default());
    // Writing to memory does not fail; were it ever to, the empty body would show it.
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
