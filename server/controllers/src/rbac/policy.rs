//! Follows roles and bindings and hands on their content, with its revision.
//!
//! It must not know who decides by it.

use std::collections::BTreeSet;

use futures::stream::StreamExt;
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_machinery::Status;
use portico_machinery::rbac::{Fact, Key, Resource};
use portico_registry::{Change, Registry, Stored};
use tokio::sync::watch;

/// Events handed on together, at most.
const BATCH: usize = 512;

/// The content of objects from now on; nothing stands for one that is gone.
pub type Changes = Vec<(Key, Option<Fact>)>;

/// Why the policy can no longer be kept up to date.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// Roles and bindings cannot be followed.
    #[error("cannot watch roles and bindings: {0}")]
    Follow(Box<Status>),
    /// The store closed.
    #[error("the store is closed")]
    Closed,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct PolicyFeed {
    known: Signal,
    handed_on: watch::Sender<i64>,
}

impl Default for PolicyFeed {
    fn default() -> Self {
        Self { known: Signal::new("RBACPolicyKnown"), handed_on: watch::Sender::new(0) }
    }
}

impl PolicyFeed {
    /// Has not looked yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Given once everything that was there at the start has been handed on.
    #[must_use]
    pub fn known(&self) -> Signal {
        self.known.clone()
    }

    /// Resolves once every change up to `revision`, that of a change of the policy, has been handed on.
    pub async fn reached(&self, revision: i64) {
        let mut handed_on = self.handed_on.subscribe();
        // It cannot end without: `self` holds the sender.
        drop(handed_on.wait_for(|at| *at >= revision).await);
    }

    /// Hands changes to `sink` in order of revision until `tasks` is cancelled. A batch that holds a change holds every
    /// change that was made before it.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub async fn run(
        self,
        registry: Registry,
        tasks: TaskSet,
        sink: impl Fn(i64, Changes) + Send + Sync + 'static,
    ) -> Result<(), PolicyError> {
        let resources = Resource::ALL.map(|resource| (resource, resource.group_resource()));
        let followed = registry.follow_together(resources).await.map_err(PolicyError::Follow)?;
        let (mut names, mut changes) = (Names::default(), Changes::new());
        for (resource, initial) in followed.initial {
            names.relist(resource, initial, &mut changes);
        }
        sink(followed.revision, changes);
        self.handed_on.send_replace(followed.revision);
        self.known.signal();
        let mut batches = followed.changes.ready_chunks(BATCH);
        let stop = tasks.token();
        while let Some(batch) = stop.run_until_cancelled(batches.next()).await {
            let Some(batch) = batch else { return Err(PolicyError::Closed) };
            let mut changes = Changes::new();
            let revisions =
                batch.into_iter().map(|(resource, change)| names.take(resource, change, &mut changes));
            let revision = revisions.max().unwrap_or(0);
            sink(revision, changes);
            self.handed_on.send_replace(revision);
        }
        Ok(())
    }
}

/// The keys that there are, so that a relist shows which are gone.
#[derive(Default)]
struct Names {
    keys: BTreeSet<Key>,
}

impl Names {
    /// Turns one change into facts and answers its revision.
    fn take(&mut self, resource: Resource, change: Change, changes: &mut Changes) -> i64 {
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

    fn put(&mut self, resource: Resource, stored: &Stored, changes: &mut Changes) {
        let key = key(resource, stored);
        self.keys.insert(key.clone());
        changes.push((key, Some(Fact::read(resource, stored.object()))));
    }

    fn relist(&mut self, resource: Resource, all: Vec<Stored>, changes: &mut Changes) {
        let present: BTreeSet<Key> = all.iter().map(|stored| key(resource, stored)).collect();
        let gone = self.keys.iter().filter(|k| k.resource == resource && !present.contains(k));
        let gone: Vec<Key> = gone.cloned().collect();
        for key in gone {
            self.keys.remove(&key);
            changes.push((key, None));
        }
        // One after another: all of them decoded at once would be large.
        all.into_iter().for_each(|stored| self.put(resource, &stored, changes));
    }
}

fn key(resource: Resource, stored: &Stored) -> Key {
    Key { resource, namespace: stored.namespace().to_owned(), name: stored.name().to_owned() }
}
