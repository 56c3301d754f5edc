//! PartialObjectMetadata: the metadata alone, cut out of the bytes.

use portico_store::Record;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Renderer;

#[derive(Deserialize)]
struct Partial<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
}

impl Renderer<'_> {
    /// The object's metadata under `meta.k8s.io/<version>`, without a closing newline.
    pub(super) fn metadata(&self, record: &Record, version: &str) -> Vec<u8> {
        let json = match record.revision {
            0 => record.value.json().to_vec(),
            _ => record.to_json(),
        };
        // Stored bytes are objects with metadata: the store refuses others when it loads them.
        let partial: Option<Partial<'_>> = serde_json::from_slice(&json).ok();
        let metadata = partial.map_or("{}", |p| p.metadata.get());
        let mut out = Vec::with_capacity(metadata.len() + 80);
        out.extend_from_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/");
        out.extend_from_slice(version.as_bytes());
        out.extend_from_slice(b"\",\"metadata\":");
        out.extend_from_slice(metadata.as_bytes());
        out.push(b'}');
        out
    }
}
