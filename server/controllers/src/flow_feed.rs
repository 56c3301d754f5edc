//! Follows flow schemas and priority levels and passes on their content.
//!
//! Does not depend on how the content is used.

use std::collections::BTreeSet;

use futures::stream::StreamExt;
use portico_kit::tasks::TaskSet;
use portico_machinery::Status;
use portico_machinery::flow_control::{Fact, Key, Resource};
use portico_registry::{Change, Registry, Stored};

/// Maximum number of events passed on together.
const BATCH: usize = 128;

/// New content of objects; `None` for objects that were deleted or are invalid.
pub type Changes = Vec<(Key, Option<Fact>)>;

/// Error that ends the feed.
#[derive(Debug, thiserror::Error)]
pub enum FlowFeedError {
    /// Flow schemas and priority levels cannot be followed.
    #[error("cannot watch flow schemas and priority levels: {0}")]
    Follow(Box<Status>),
    /// The store closed.
    #[error("the store is closed")]
    Closed,
}

/// Passes changes to `sink` until `tasks` is cancelled.
///
/// # Errors
/// Returns [`FlowFeedError`] if the objects cannot be followed.
pub async fn run(
    registry: Registry,
    tasks: TaskSet,
    sink: impl Fn(Changes) + Send + Sync + 'static,
) -> Result<(), FlowFeedError> {
    let resources = Resource::ALL.map(|resource| (resource, resource.group_resource()));
    let followed = registry.follow_together(resources).await.map_err(FlowFeedError::Follow)?;
    let (mut known, mut changes) = (Known::default(), Changes::new());
    for (resource, initial) in &followed.initial {
        known.relist(*resource, initial, &mut changes);
    }
    sink(changes);
    let mut batches = followed.changes.ready_chunks(BATCH);
    let stop = tasks.token();
    while let Some(batch) = stop.run_until_cancelled(batches.next()).await {
        let Some(batch) = batch else { return Err(FlowFeedError::Closed) };
        let mut changes = Changes::new();
        batch.into_iter().for_each(|(resource, change)| known.take(resource, &change, &mut changes));
        sink(changes);
    }
    Ok(())
}

/// Existing keys, to detect deletions in a relist.
#[derive(Default)]
struct Known {
    keys: BTreeSet<Key>,
}

impl Known {
    fn take(&mut self, resource: Resource, change: &Change, changes: &mut Changes) {
        match change {
            Change::Put(stored) => self.put(resource, stored, changes),
            Change::Deleted(stored) => {
                let key = key(resource, stored);
                self.keys.remove(&key);
                changes.push((key, None));
            }
            Change::Relisted(all, _) => self.relist(resource, all, changes),
        }
    }

    fn put(&mut self, resource: Resource, stored: &Stored, changes: &mut Changes) {
        let key = key(resource, stored);
        let fact = Fact::read(resource, stored.object());
        let fact = fact.inspect_err(
            |error| tracing::warn!(object = %key, %error, "invalid priority level, object skipped"),
        );
        self.keys.insert(key.clone());
        changes.push((key, fact.ok()));
    }

    fn relist(&mut self, resource: Resource, all: &[Stored], changes: &mut Changes) {
        let present: BTreeSet<Key> = all.iter().map(|stored| key(resource, stored)).collect();
        let gone = |key: &Key| key.resource == resource && !present.contains(key);
        changes.extend(self.keys.iter().filter(|key| gone(key)).map(|key| (key.clone(), None)));
        self.keys.retain(|key| !gone(key));
        all.iter().for_each(|stored| self.put(resource, stored, changes));
    }
}

fn key(resource: Resource, stored: &Stored) -> Key {
    Key { resource, name: stored.name().to_owned() }
}
