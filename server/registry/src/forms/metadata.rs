//! PartialObjectMetadata: the metadata of an object, extracted from its JSON.

use portico_machinery::accept::MetaVersion;
use portico_store::Record;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Renderer;
use crate::stored_object;

#[derive(Deserialize)]
struct MetadataOnly<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
}

impl Renderer<'_> {
    /// The object's metadata in a version of `meta.k8s.io`, without a closing newline, and without the annotation that upstream
    /// stores in a separate field.
    pub(super) fn metadata(&self, record: &Record, version: MetaVersion) -> Vec<u8> {
        let Some(annotation) = self.served_resource.strategies.table.annotation_for_field() else {
            let json = match record.revision {
                0 => record.value.json().to_vec(),
                _ => record.to_json(),
            };
            return Self::wrap_metadata(&json, version);
        };
        let mut object = stored_object::decode(record);
        object.remove(&["metadata", "annotations", annotation]);
        if object.at(&["metadata", "annotations"]).is_empty() {
            object.remove(&["metadata", "annotations"]);
        }
        Self::wrap_metadata(&object.to_json(), version)
    }

    fn wrap_metadata(json: &[u8], version: MetaVersion) -> Vec<u8> {
        // Stored bytes are objects with metadata: the store refuses others when it loads them.
        let partial: Option<MetadataOnly<'_>> = serde_json::from_slice(json).ok();
        let metadata = partial.map_or("{}", |p| p.metadata.get());
        let mut out = Vec::with_capacity(metadata.len() + 80);
        out.extend_from_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"");
        out.extend_from_slice(version.api_version().as_bytes());
        out.extend_from_slice(b"\",\"metadata\":");
        out.extend_from_slice(metadata.as_bytes());
        out.push(b'}');
        out
    }
}
