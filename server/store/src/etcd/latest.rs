//! How far etcd has come, by a linearizable read of one key.

use tokio::sync::watch;

use super::client::Client;
use super::failure::Failure;
use super::wire::RangeRequest;
use crate::error::StoreError;
use crate::latest::Ask;

/// Who asks.
pub(super) struct Asking {
    pub(super) client: Client,
    /// Which key is read.
    pub(super) key: Vec<u8>,
    /// Up to where whoever follows etcd is asked to show it.
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
