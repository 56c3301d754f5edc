//! Follows flow schemas and priority levels and passes on their content.
//!
//! Does not depend on how the content is used.

use std::collections::BTreeSet;

use futures::stream::StreamExt;
use portico_kit::tasks::TaskSet;
use portico_machinery::Status;
use portico_machinery::flow_control::{Fact, Key, Resource};
use portico_registry::{Change, Registry, StoredObject};

/// Maximum number of events passed on together.
const BATCH: usize = 128;

/// New content of objects; `None` for objects that were deleted or are invalid.
pub type FlowChanges = Vec<(Key, Option<Fact>)>;

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
    sink: impl Fn(FlowChanges) + Send + Sync + 'static,
) -> Result<(), FlowFeedError> {
    let resources = Resource::ALL.map(|resource| (resource, resource.group_resource()));
    let feed = registry.follow_all(resources).await.map_err(FlowFeedError::Follow)?;
    let (mut known_keys, mut changes) = (KnownKeys::default(), FlowChanges::new());
    for (resource, initial) in &feed.initial {
        known_keys.relist(*resource, initial, &mut changes);
    }
    sink(changes);
    let mut batches = feed.changes.ready_chunks(BATCH);
    let stop = tasks.token();
    while let Some(batch) = stop.run_until_cancelled(batches.next()).await {
        let Some(batch) = batch else { return Err(FlowFeedError::Closed) };
        let mut changes = FlowChanges::new();
        batch.into_iter().for_each(|(resource, change)| known_keys.apply(resource, &change, &mut changes));
        sink(changes);
    }
    Ok(())
}

/// Existing keys, to detect deletions in a relist.
#[derive(Default)]
struct KnownKeys {
    keys: BTreeSet<Key>,
}

impl KnownKeys {
    fn apply(&mut self, resource: Resource, change: &Change, changes: &mut FlowChanges) {
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

    fn put(&mut self, resource: Resource, stored: &StoredObject, changes: &mut FlowChanges) {
        let key = key(resource, stored);
        let fact = Fact::read(resource, stored.object());
        let fact = fact.inspect_err(
            |error| tracing::warn!(object = %key, %error, "invalid priority level, object skipped"),
        );
        self.keys.insert(key.clone());
        changes.push((key, fact.ok()));
    }

    fn relist(&mut self, resource: Resource, all: &[StoredObject], changes: &mut FlowChanges) {
        let present: BTreeSet<Key> = all.iter().map(|stored| key(resource, stored)).collect();
        let is_removed = |key: &Key| key.resource == resource && !present.contains(key);
        changes.extend(self.keys.iter().filter(|key| is_removed(key)).map(|key| (key.clone(), None)));
        self.keys.retain(|key| !is_removed(key));
        all.iter().for_each(|stored| self.put(resource, stored, changes));
    }
}

fn key(resource: Resource, stored: &StoredObject) -> Key {
    Key { resource, name: stored.name().to_owned() }
}
