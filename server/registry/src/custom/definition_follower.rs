//! Follower of definitions: ends watches of removed versions immediately, not at the next request.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;

use super::definition_facts::DefinitionFacts;
use super::definitions::Definitions;
use crate::Result;
use crate::definition;
use crate::follow::{Change, ChangeStream, ResourceFeed};
use crate::registry::Registry;
use crate::stored_object::StoredObject;

/// Time for which a compiled definition is kept without use; checked at the same interval.
///
/// Limit (Definitions and schemas): it is compiled again at its next use.
const IDLE: Duration = Duration::from_secs(300);

impl Registry {
    /// Loads all definitions, after which custom resources are served. The returned future follows changes of definitions while
    /// it is polled. Has no effect if definitions are not served (`--runtime-config`).
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn serve_custom_resources(&self) -> Result<impl Future<Output = ()> + Send + use<>> {
        let resource = definition::resource();
        let feed = match self.objects().served_resource(&resource) {
            Ok(_) => Some(self.follow(&resource).await?),
            Err(_) => None,
        };
        let registry = self.clone();
        // Drops the initial states here: the future would otherwise keep them for its whole life.
        let changes = feed.map(|ResourceFeed { initial, changes, .. }| {
            initial.iter().for_each(|stored| drop(registry.definitions().insert(stored.record())));
            changes
        });
        Ok(async move {
            if let Some(changes) = changes {
                registry.follow_definitions(changes).await;
            }
        })
    }

    /// Content of a definition without its schemas, shared with the compiled versions if they are of the same state.
    ///
    /// # Errors
    /// JSON that is not a definition, which the store never contains.
    pub fn facts(&self, definition: &StoredObject) -> Result<Arc<DefinitionFacts>, serde_json::Error> {
        let record = definition.record();
        let cached = self.definitions().facts(record);
        cached.map_or_else(|| DefinitionFacts::read(record.value.json()).map(Arc::new), Ok)
    }

    async fn follow_definitions(&self, mut changes: ChangeStream) {
        let mut idle = tokio::time::interval(IDLE);
        loop {
            tokio::select! {
                change = changes.next() => match change {
                    Some(change) => self.definitions().apply(change),
                    None => return,
                },
                _ = idle.tick() => self.definitions().drop_idle(),
            }
        }
    }
}

impl Definitions {
    fn apply(&self, change: Change) {
        match change {
            Change::Put(stored) => drop(self.insert(stored.record())),
            Change::Deleted(stored) => self.remove(stored.name(), stored.revision()),
            Change::Relisted(all, revision) => {
                for stored in &all {
                    self.insert(stored.record());
                }
                let names: HashSet<&str> = all.iter().map(StoredObject::name).collect();
                self.retain(revision, |name| names.contains(name));
            }
        }
    }
}
