//! The merged version 2 document in all forms.

use bytes::Bytes;
use portico_machinery::Status;
use tokio::sync::OnceCell;

use super::gzip::{compress, decompress};
use super::protobuf;
use crate::etag::quoted_sha512;
use crate::workers::Workers;

/// Merged version 2 document, compressed.
#[derive(Debug)]
pub(crate) struct MergedDocument {
    pub gzip: Bytes,
    /// Quoted tag of the JSON.
    pub etag: String,
    /// Encoded for the first request that needs it.
    protobuf: OnceCell<Bytes>,
}

impl MergedDocument {
    /// Creates the document from its JSON.
    pub(super) fn new(json: &[u8]) -> Self {
        Self { etag: quoted_sha512(json), gzip: compress(json), protobuf: OnceCell::new() }
    }

    /// Returns the document as `openapi.v2.Document`, compressed.
    pub(super) async fn protobuf(&self, workers: &Workers) -> Result<Bytes, Box<Status>> {
        let gzip = self.gzip.clone();
        let encode = move || {
            let json = decompress(&gzip)?;
            let bytes = protobuf::encode_v2(&json).map_err(|error| Box::new(Status::internal(error)))?;
            Ok(compress(&bytes))
        };
        let make = || async { workers.compute(usize::MAX, encode).await? };
        self.protobuf.get_or_try_init(make).await.cloned()
    }
}
