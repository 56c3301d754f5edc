//! Several resources as they were at one moment, for controllers that compare what they hold.
//!
//! Knows no kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use portico_machinery::{GroupResource, Object, Status};
use portico_store::Snapshot;

use crate::Result;
use crate::registry::Registry;
use crate::stored::{Stored, decode};
use crate::unreadable;

/// Attempts to read all resources of a quota at one revision.
///
/// Limit (Admission and quota): it is counted again after a delay.
const MAX_LOOKS: usize = 1_000;

/// Resources as they were at one moment.
#[derive(Clone, Debug)]
pub struct ConsistentSnapshots {
    resources: BTreeMap<GroupResource, Snapshot>,
}

impl ConsistentSnapshots {
    /// An object; nothing when it is not there, cannot be read, or its resource was not asked for.
    #[must_use]
    pub fn get(&self, resource: &GroupResource, namespace: &str, name: &str) -> Option<Stored> {
        let record = self.resources.get(resource)?.get_path(&format!("{namespace}/{name}"))?;
        Some(Stored::new(Arc::clone(record)))
    }

    /// How many objects of a resource a namespace has, those that cannot be read included.
    #[must_use]
    pub fn count(&self, resource: &GroupResource, namespace: &str) -> usize {
        let of = |snapshot: &Snapshot| {
            snapshot.range(Some(namespace), None).len() + snapshot.unreadable_in(Some(namespace)).count()
        };
        self.resources.get(resource).map_or(0, of)
    }

    /// The objects of a resource in a namespace (all, when it is empty), each decoded when it is reached, in their storage
    /// version.
    ///
    /// # Errors
    /// 500 when one of them cannot be read.
    pub fn objects(
        &self,
        resource: &GroupResource,
        namespace: &str,
    ) -> Result<impl Iterator<Item = Object> + use<'_>> {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let snapshot = self.resources.get(resource);
        if let Some(object) = snapshot.and_then(|snapshot| snapshot.unreadable_in(namespace).next()) {
            return Err(Box::new(unreadable::of(resource, object)));
        }
        let records = snapshot.map(|snapshot| snapshot.range(namespace, None));
        Ok(records.into_iter().flatten().map(|record| decode(record)))
    }
}

impl Registry {
    /// These resources as they are at one moment; those that are not served are left out.
    ///
    /// # Errors
    /// 503 when the store cannot be read, or changes faster than it is looked at.
    pub async fn together(&self, resources: &[GroupResource]) -> Result<ConsistentSnapshots> {
        for _ in 0..MAX_LOOKS {
            let mut together = ConsistentSnapshots { resources: BTreeMap::new() };
            for resource in resources {
                let Ok(served) = self.objects().served(resource) else { continue };
                let snapshot = self.objects().snapshot(&served).await?;
                together.resources.insert(resource.clone(), snapshot);
            }
            let all = || together.resources.values();
            let (since, until) = (all().map(Snapshot::changed).max(), all().map(Snapshot::revision).min());
            if since.zip(until).is_none_or(|(since, until)| since <= until) {
                return Ok(together);
            }
            tokio::task::yield_now().await;
        }
        Err(Box::new(Status::unavailable("the store changes too fast for a consistent read")))
    }
}
