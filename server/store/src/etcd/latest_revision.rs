//! Query for the head of etcd, with a linearizable read of one key.

use tokio::sync::watch;

use super::client::Client;
use super::failure::EtcdFailure;
use super::wire::RangeRequest;
use crate::error::StoreError;
use crate::latest_revision::QueryLatest;

/// Query for the head.
pub(super) struct HeadQuery {
    pub(super) client: Client,
    /// Key to read.
    pub(super) key: Vec<u8>,
    /// Revision up to which the follower must publish.
    pub(super) wanted_revision: watch::Sender<i64>,
}

impl QueryLatest for HeadQuery {
    const TIMEOUT_MESSAGE: &'static str = "timed out waiting for the latest revision";

    async fn query_latest(&self) -> Result<i64, StoreError> {
        let request = RangeRequest { key: self.key.clone(), count_only: true, ..RangeRequest::default() };
        let found = self.client.range(request).await.map_err(EtcdFailure::into_store_error)?;
        Ok(found.header.unwrap_or_default().revision)
    }

    fn on_database_ahead(&self, revision: i64) {
        self.wanted_revision
            .send_if_modified(|wanted| std::mem::replace(wanted, revision.max(*wanted)) < revision);
    }
}
