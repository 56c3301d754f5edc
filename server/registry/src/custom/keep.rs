//! Following definitions: what they no longer serve ends at once, not when somebody asks for it next.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;

use super::definitions::Definitions;
use super::facts::Facts;
use crate::Result;
use crate::definition;
use crate::follow::{Change, ChangeStream, Followed};
use crate::registry::Registry;
use crate::stored::Stored;

/// Time for which a compiled definition is kept without use; checked at the same interval.
///
/// Limit (Definitions and schemas): it is compiled again at its next use.
const IDLE: Duration = Duration::from_secs(300);

impl Registry {
    /// Loads all definitions; custom resources are served from then on. What is given back keeps up with them for as long
    /// as it is polled. Nothing is loaded where definitions are not served (`--runtime-config`).
    ///
    /// # Errors
    /// 503 when the store cannot be read.
    pub async fn serve_custom_resources(&self) -> Result<impl Future<Output = ()> + Send + use<>> {
        let resource = definition::resource();
        let followed = match self.objects().served(&resource) {
            Ok(_) => Some(self.follow(&resource).await?),
            Err(_) => None,
        };
        let registry = self.clone();
        // The rest of what is followed from goes here: states of today would be kept for as long as there are changes.
        let changes = followed.map(|Followed { initial, changes, .. }| {
            initial.iter().for_each(|stored| drop(registry.definitions().take(stored.record())));
            changes
        });
        Ok(async move {
            if let Some(changes) = changes {
                registry.keep_definitions(changes).await;
            }
        })
    }

    /// What is to be known of a definition besides its schemas: shared with what serves it, where that knows this state.
    ///
    /// # Errors
    /// What is no definition; the store holds none such.
    pub fn facts(&self, definition: &Stored) -> Result<Arc<Facts>, serde_json::Error> {
        let record = definition.record();
        let known = self.definitions().facts(record);
        known.map_or_else(|| Facts::read(record.value.json()).map(Arc::new), Ok)
    }

    async fn keep_definitions(&self, mut changes: ChangeStream) {
        let mut idle = tokio::time::interval(IDLE);
        loop {
            tokio::select! {
                change = changes.next() => match change {
                    Some(change) => self.definitions().follow(change),
                    None => return,
                },
                _ = idle.tick() => self.definitions().drop_idle(),
            }
        }
    }
}

impl Definitions {
    fn follow(&self, change: Change) {
        match change {
            Change::Put(stored) => drop(self.take(stored.record())),
            Change::Deleted(stored) => self.forget(stored.name(), stored.revision()),
            Change::Relisted(all, revision) => {
                for stored in &all {
                    self.take(stored.record());
                }
                let there: HashSet<&str> = all.iter().map(Stored::name).collect();
                self.retain(revision, |name| there.contains(name));
            }
        }
    }
}
