//! Follows roles and bindings and passes on their content, with its revision.
//!
//! Does not depend on how the content is used.

use std::collections::BTreeSet;

use futures::stream::StreamExt;
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_machinery::Status;
use portico_machinery::rbac::{Fact, Key, Resource};
use portico_registry::{Change, Registry, StoredObject};
use tokio::sync::watch;

/// Maximum number of events passed on together.
const MAX_BATCH_SIZE: usize = 512;

/// New content of objects; `None` for deleted ones.
pub type PolicyChanges = Vec<(Key, Option<Fact>)>;

/// Error that ends the feed.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// Roles and bindings cannot be followed.
    #[error("cannot watch roles and bindings: {0}")]
    Follow(Box<Status>),
    /// The store closed.
    #[error("the store is closed")]
    Closed,
}

/// Feed of the content of roles and bindings.
#[derive(Clone, Debug)]
pub struct PolicyFeed {
    synced: Signal,
    delivered_revision: watch::Sender<i64>,
}

impl Default for PolicyFeed {
    fn default() -> Self {
        Self { synced: Signal::new("RBACPolicyKnown"), delivered_revision: watch::Sender::new(0) }
    }
}

impl PolicyFeed {
    /// Creates a feed that has delivered nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a signal that is set once all objects that existed at the start are delivered.
    #[must_use]
    pub fn synced(&self) -> Signal {
        self.synced.clone()
    }

    /// Waits until every change up to `revision`, the revision of a change of the policy, is delivered.
    pub async fn wait_delivered(&self, revision: i64) {
        let mut delivered = self.delivered_revision.subscribe();
        // Cannot fail: `self` holds the sender.
        drop(delivered.wait_for(|at| *at >= revision).await);
    }

    /// Passes changes to `sink` in the order of revisions until `tasks` is cancelled. A batch that contains a change contains
    /// every change before it.
    ///
    /// # Errors
    /// Returns [`PolicyError`] if the objects cannot be followed.
    pub async fn run(
        self,
        registry: Registry,
        tasks: TaskSet,
        sink: impl Fn(i64, PolicyChanges) + Send + Sync + 'static,
    ) -> Result<(), PolicyError> {
        let resources = Resource::ALL.map(|resource| (resource, resource.group_resource()));
        let feed = registry.follow_all(resources).await.map_err(PolicyError::Follow)?;
        let (mut known_keys, mut changes) = (KnownKeys::default(), PolicyChanges::new());
        for (resource, initial) in feed.initial {
            known_keys.relist(resource, initial, &mut changes);
        }
        sink(feed.revision, changes);
        self.delivered_revision.send_replace(feed.revision);
        self.synced.signal();
        let mut batches = feed.changes.ready_chunks(MAX_BATCH_SIZE);
        let stop = tasks.token();
        while let Some(batch) = stop.run_until_cancelled(batches.next()).await {
            let Some(batch) = batch else { return Err(PolicyError::Closed) };
            let mut changes = PolicyChanges::new();
            let revisions =
                batch.into_iter().map(|(resource, change)| known_keys.apply(resource, change, &mut changes));
            let revision = revisions.max().unwrap_or(0);
            sink(revision, changes);
            self.delivered_revision.send_replace(revision);
        }
        Ok(())
    }
}

/// Existing keys, to detect deletions in a relist.
#[derive(Default)]
struct KnownKeys {
    keys: BTreeSet<Key>,
}

impl KnownKeys {
    /// Converts a change to facts and returns its revision.
    fn apply(&mut self, resource: Resource, change: Change, changes: &mut PolicyChanges) -> i64 {
        match change {
            Change::Put(stored) => {
                self.put(resource, &stored, changes);
                stored.revision()
            }
            Change::Deleted(stored) => {
                let key = key(resource, &stored);
                self.keys.remove(&key);
                changes.push((key, None));
                stored.revision()
            }
            Change::Relisted(all, revision) => {
                self.relist(resource, all, changes);
                revision
            }
        }
    }

    fn put(&mut self, resource: Resource, stored: &StoredObject, changes: &mut PolicyChanges) {
        let key = key(resource, stored);
        self.keys.insert(key.clone());
        changes.push((key, Some(Fact::read(resource, stored.object()))));
    }

    fn relist(&mut self, resource: Resource, all: Vec<StoredObject>, changes: &mut PolicyChanges) {
        let present: BTreeSet<Key> = all.iter().map(|stored| key(resource, stored)).collect();
        let removed = self.keys.iter().filter(|k| k.resource == resource && !present.contains(k));
        let removed: Vec<Key> = removed.cloned().collect();
        for key in removed {
            self.keys.remove(&key);
            changes.push((key, None));
        }
        // Decoded one by one to limit memory.
        all.into_iter().for_each(|stored| self.put(resource, &stored, changes));
    }
}

fn key(resource: Resource, stored: &StoredObject) -> Key {
    Key { resource, namespace: stored.namespace().to_owned(), name: stored.name().to_owned() }
}
