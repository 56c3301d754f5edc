//! Query for the head of etcd, with a linearizable read of one key.

use tokio::sync::watch;

use super::client::Client;
use super::failure::Failure;
use super::wire::RangeRequest;
use crate::error::StoreError;
use crate::latest::Ask;

/// Query for the head.
pub(super) struct Asking {
    pub(super) client: Client,
    /// Key to read.
    pub(super) key: Vec<u8>,
    /// Revision up to which the follower must publish.
    pub(super) wanted: watch::Sender<i64>,
}

impl Ask for Asking {
    const LATE: &'static str = "timed out waiting for the latest revision";

    async fn ask(&self) -> Result<i64, StoreError> {
        let request = RangeRequest { key: self.key.clone(), count_only: true, ..RangeRequest::default() };
        let found = self.client.range(request).await.map_err(Failure::of_read)?;
        Ok(found.header.unwrap_or_default().revision)
    }

    fn is_ahead(&self, revision: i64) {
        self.wanted.send_if_modified(|wanted| std::mem::replace(wanted, revision.max(*wanted)) < revision);
    }
}
