//! Reads again what could not be opened, when it may be with other keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::failure::Failure;
use super::follow::{Follower, HEAL_RETRY};
use super::wire::RangeRequest;

impl Follower {
    /// Shows what could not be opened before and can be now. Who watches its resource has passed it, and lists anew. When this is
    /// to be tried again.
    pub(super) async fn heal(&self) -> Result<Option<Instant>, Failure> {
        let (mut again, mut healed) = (None, BTreeSet::new());
        let sealed = self.publisher.cache.unreadable().into_iter().filter(|object| object.is_sealed());
        for object in sealed {
            let key = self.reader.keys.of(object.key()).into_bytes();
            let answer = self.reader.client.range(RangeRequest { key, ..RangeRequest::default() }).await?;
            // What has changed since comes by the watch.
            let Some(found) = answer.kvs.first().filter(|found| found.mod_revision == object.revision())
            else {
                continue;
            };
            match self.reader.values.decode(object.key().clone(), found).await {
                Ok(Ok(record)) => {
                    tracing::info!(object = %record.key, "stored object is readable again");
                    healed.insert(record.key.resource().clone());
                    self.publisher.cache.heal(Arc::new(record));
                }
                Ok(Err(_)) => {}
                Err(Failure::Sealed { .. }) => again = Some(Instant::now() + HEAL_RETRY),
                Err(failure) => return Err(failure),
            }
        }
        for resource in &healed {
            self.publisher.count_unreadable(resource);
            self.publisher.hub.expire(resource);
        }
        Ok(again)
    }
}
