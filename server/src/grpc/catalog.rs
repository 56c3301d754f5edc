//! `portico.catalog.v1`: documents by hash.

use std::pin::Pin;

use bytes::Bytes;
use futures::{Stream, stream};
use portico_proto::catalog as pb;
use portico_proto::catalog::catalog_server::Catalog;
use portico_server_catalog::Documents;
use tonic::{Request, Response};

use super::RpcResult;

/// Maximum bytes of a document in one message.
const PART_BYTES: usize = 1024 * 1024;

/// Implementation of the service, which only facades can call.
pub(crate) struct CatalogService {
    pub(crate) documents: Documents,
}

#[tonic::async_trait]
impl Catalog for CatalogService {
    type GetStream = Pin<Box<dyn Stream<Item = RpcResult<pb::GetResponse>> + Send>>;

    async fn get(&self, request: Request<pb::GetRequest>) -> RpcResult<Response<Self::GetStream>> {
        let hash = request.into_inner().hash;
        let document =
            self.documents.get(&hash).await.ok_or_else(|| {
                tonic::Status::not_found(format!("no entry refers to the document {hash:?}"))
            })?;
        Ok(Response::new(Box::pin(stream::iter(parts(document)))))
    }
}

/// Splits a document into messages; an empty document is one message.
fn parts(mut document: Bytes) -> impl Iterator<Item = RpcResult<pb::GetResponse>> {
    let mut first = true;
    std::iter::from_fn(move || {
        if document.is_empty() && !first {
            return None;
        }
        first = false;
        let part = document.split_to(document.len().min(PART_BYTES));
        Some(Ok(pb::GetResponse { part }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_cut_into_parts_that_join_to_itself() {
        for length in [0, 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES] {
            let document = Bytes::from(vec![7; length]);
            let cut: Vec<_> = parts(document.clone()).map(|p| p.unwrap().part).collect();
            assert_eq!(cut.concat(), document);
            assert!(cut.iter().all(|p| p.len() <= PART_BYTES) && !cut.is_empty());
        }
    }
}
