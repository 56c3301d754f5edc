//! JSON as upstream's encoder writes it.

use bytes::Bytes;
use serde::Serialize;

pub(super) fn encode(value: &impl Serialize) -> Bytes {
    // Structs of strings always encode.
    with_newline(&serde_json::to_vec(value).unwrap_or_default())
}

/// JSON as upstream's encoder ends it.
pub(super) fn with_newline(json: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(json.len() + 1);
    bytes.extend_from_slice(json);
    if json.last() != Some(&b'\n') {
        bytes.push(b'\n');
    }
    bytes.into()
}
