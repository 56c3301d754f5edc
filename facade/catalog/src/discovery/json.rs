//! JSON in the format of upstream's encoder.

use bytes::Bytes;
use serde::Serialize;

pub(super) fn encode(value: &impl Serialize) -> Bytes {
    // Serialization of structs of strings does not fail.
    with_newline(&serde_json::to_vec(value).unwrap_or_default())
}

/// Ends JSON with a newline, as upstream's encoder does.
pub(super) fn with_newline(json: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(json.len() + 1);
    bytes.extend_from_slice(json);
    if json.last() != Some(&b'\n') {
        bytes.push(b'\n');
    }
    bytes.into()
}
