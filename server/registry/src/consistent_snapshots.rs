//! Snapshots of several resources at one revision, for controllers that compare their contents. Independent of kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use portico_machinery::{GroupResource, Object, Status};
use portico_store::Snapshot;

use crate::Result;
use crate::registry::Registry;
use crate::stored_object::{StoredObject, decode};
use crate::unreadable;

/// Attempts to read all resources of a quota at one revision.
///
/// Limit (Admission and quota): it is counted again after a delay.
const MAX_READ_ATTEMPTS: usize = 1_000;

/// Snapshots of several resources at one revision.
#[derive(Clone, Debug)]
pub struct ConsistentSnapshots {
    resources: BTreeMap<GroupResource, Snapshot>,
}

impl ConsistentSnapshots {
    /// Returns an object; `None` if it is absent or unreadable, or if its resource is not part of the snapshots.
    #[must_use]
    pub fn get(&self, resource: &GroupResource, namespace: &str, name: &str) -> Option<StoredObject> {
        let record = self.resources.get(resource)?.get_path(&format!("{namespace}/{name}"))?;
        Some(StoredObject::new(Arc::clone(record)))
    }

    /// Number of objects of a resource in a namespace, including unreadable ones.
    #[must_use]
    pub fn count(&self, resource: &GroupResource, namespace: &str) -> usize {
        let objects_in = |snapshot: &Snapshot| {
            snapshot.range(Some(namespace), None).len() + snapshot.unreadable_in(Some(namespace)).count()
        };
        self.resources.get(resource).map_or(0, objects_in)
    }

    /// Objects of a resource in a namespace (all namespaces if it is empty), in their storage version. Decodes each object when
    /// the iterator reaches it.
    ///
    /// # Errors
    /// Status 500 if an object cannot be read.
    pub fn objects(
        &self,
        resource: &GroupResource,
        namespace: &str,
    ) -> Result<impl Iterator<Item = Object> + use<'_>> {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let snapshot = self.resources.get(resource);
        if let Some(object) = snapshot.and_then(|snapshot| snapshot.unreadable_in(namespace).next()) {
            return Err(Box::new(unreadable::unreadable_status(resource, object)));
        }
        let records = snapshot.map(|snapshot| snapshot.range(namespace, None));
        Ok(records.into_iter().flatten().map(|record| decode(record)))
    }
}

impl Registry {
    /// Reads these resources at one revision; skips resources that are not served.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read, or changes during every attempt.
    pub async fn consistent_snapshots(&self, resources: &[GroupResource]) -> Result<ConsistentSnapshots> {
        for _ in 0..MAX_READ_ATTEMPTS {
            let mut snapshots = ConsistentSnapshots { resources: BTreeMap::new() };
            for resource in resources {
                let Ok(served_resource) = self.objects().served_resource(resource) else { continue };
                let snapshot = self.objects().snapshot(&served_resource).await?;
                snapshots.resources.insert(resource.clone(), snapshot);
            }
            let all_snapshots = || snapshots.resources.values();
            let (since, until) = (
                all_snapshots().map(Snapshot::unchanged_since).max(),
                all_snapshots().map(Snapshot::revision).min(),
            );
            if since.zip(until).is_none_or(|(since, until)| since <= until) {
                return Ok(snapshots);
            }
            tokio::task::yield_now().await;
        }
        Err(Box::new(Status::unavailable("the store changes too fast for a consistent read")))
    }
}
