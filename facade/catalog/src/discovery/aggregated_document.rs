//! A finished aggregated document and its tag.

use std::sync::OnceLock;

use bytes::Bytes;
use portico_machinery::accept::Encoding;

use super::protobuf;

/// See the module.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Aggregated {
    pub json: Bytes,
    /// Quoted, upper-case hex SHA-512 of the JSON; the same for every encoding.
    pub etag: String,
    protobuf: OnceLock<Bytes>,
}

impl Aggregated {
    /// This JSON under its tag.
    pub(super) fn new(json: Bytes, etag: String) -> Self {
        Self { json, etag, protobuf: OnceLock::new() }
    }

    /// What is sent in this encoding, of which YAML is made of JSON.
    pub(super) fn body(&self, encoding: Encoding) -> Bytes {
        match encoding {
            Encoding::Protobuf => self.protobuf.get_or_init(|| protobuf::encode(&self.json)).clone(),
            Encoding::Json | Encoding::Yaml => self.json.clone(),
        }
    }
}
