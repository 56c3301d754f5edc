//! Retries objects that could not be opened, after a change of keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::failure::EtcdFailure;
use super::follow::{Follower, UNREADABLE_RETRY_INTERVAL};
use super::wire::RangeRequest;

impl Follower {
    /// Publishes objects that can be opened now. Watchers of their resources have passed their revisions, and list again.
    /// Returns the time of the next attempt, if needed.
    pub(super) async fn retry_unreadable(&self) -> Result<Option<Instant>, EtcdFailure> {
        let (mut next_attempt, mut readable_again) = (None, BTreeSet::new());
        let sealed = self.publisher.cache.unreadable().into_iter().filter(|object| object.is_sealed());
        for object in sealed {
            let key = self.reader.keys.object_key(object.key()).into_bytes();
            let response = self.reader.client.range(RangeRequest { key, ..RangeRequest::default() }).await?;
            // Later changes arrive through the watch.
            let Some(found) = response.kvs.first().filter(|found| found.mod_revision == object.revision())
            else {
                continue;
            };
            match self.reader.values.decode(object.key().clone(), found).await {
                Ok(Ok(record)) => {
                    tracing::info!(object = %record.key, "stored object is readable again");
                    readable_again.insert(record.key.resource().clone());
                    self.publisher.cache.restore_readable(Arc::new(record));
                }
                Ok(Err(_)) => {}
                Err(EtcdFailure::Sealed { .. }) => {
                    next_attempt = Some(Instant::now() + UNREADABLE_RETRY_INTERVAL)
                }
                Err(failure) => return Err(failure),
            }
        }
        for resource in &readable_again {
            self.publisher.count_unreadable(resource);
            self.publisher.hub.expire(resource);
        }
        Ok(next_attempt)
    }
}
