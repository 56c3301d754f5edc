//! Retries objects that could not be opened, after a change of keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::failure::Failure;
use super::follow::{Follower, HEAL_RETRY};
use super::wire::RangeRequest;

impl Follower {
    /// Publishes objects that can be opened now. Watchers of their resources have passed their revisions, and list again.
    /// Returns the time of the next attempt, if needed.
    pub(super) async fn heal(&self) -> Result<Option<Instant>, Failure> {
        let (mut again, mut healed) = (None, BTreeSet::new());
        let sealed = self.publisher.cache.unreadable().into_iter().filter(|object| object.is_sealed());
        for object in sealed {
            let key = self.reader.keys.of(object.key()).into_bytes();
            let answer = self.reader.client.range(RangeRequest { key, ..RangeRequest::default() }).await?;
            // Later changes arrive through the watch.
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
