//! A complete aggregated document and its tag.

use bytes::Bytes;
use portico_machinery::Status;
use portico_machinery::accept::Encoding;
use portico_machinery::discovery::GroupMetadata;
use serde::Serialize;
use tokio::sync::OnceCell;

use super::{json, protobuf};
use crate::etag::quoted_sha512;
use crate::workers::Workers;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<T> {
    kind: &'static str,
    api_version: &'static str,
    metadata: GroupMetadata,
    items: Vec<T>,
}

/// An encoded aggregated document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AggregatedDocument {
    pub json: Bytes,
    /// Quoted upper-case hex SHA-512 of the JSON, the same for all encodings.
    pub etag: String,
    protobuf: OnceCell<Bytes>,
}

impl AggregatedDocument {
    /// Encodes these groups and computes the tag.
    pub(super) fn encode(items: Vec<impl Serialize>) -> Self {
        let json = json::encode(&List {
            kind: "APIGroupDiscoveryList",
            api_version: "apidiscovery.k8s.io/v2",
            metadata: GroupMetadata::default(),
            items,
        });
        let etag = quoted_sha512(&json);
        Self { json, etag, protobuf: OnceCell::new() }
    }

    /// Returns the document in this encoding. For YAML this is JSON, which the caller converts.
    pub(super) async fn body(&self, workers: &Workers, encoding: Encoding) -> Result<Bytes, Box<Status>> {
        let json = self.json.clone();
        if encoding != Encoding::Protobuf {
            return Ok(json);
        }
        let make = || workers.compute(json.len(), move || protobuf::encode(&json));
        self.protobuf.get_or_try_init(make).await.cloned()
    }
}
