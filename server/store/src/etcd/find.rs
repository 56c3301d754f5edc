//! Finds and counts objects: from memory, by keys, or with a scan of the stored values.

use super::failure::Failure;
use super::pages::{self, Pages};
use super::read::Reader;
use super::wire::RangeRequest;
use crate::error::StoreError;
use crate::key::{Key, Resource};
use crate::seal::SealError;
use crate::store::SealedOtherwise;

/// Number of objects in the sample from which the average size of a resource is computed.
const SAMPLE: usize = 32;

impl Reader {
    pub(super) async fn dependents(&self, owner_uid: &str) -> Result<Vec<Key>, StoreError> {
        self.know_owners().await?;
        Ok(self.owners.dependents(owner_uid))
    }

    pub(super) async fn owners(&self) -> Result<Vec<String>, StoreError> {
        self.know_owners().await?;
        Ok(self.owners.all())
    }

    /// Ensures that the owner index is loaded and current.
    async fn know_owners(&self) -> Result<(), StoreError> {
        self.latest.reach().await?;
        if self.owners.is_known() {
            return Ok(());
        }
        let _one_reads = self.owners.reading.lock().await;
        if self.owners.is_known() {
            return Ok(());
        }
        self.owners.begin();
        let mut pages = Pages::new(&self.client, self.keys.all(), 0);
        let mut found = Vec::new();
        while let Some(part) = pages.next(None).await.map_err(Failure::of_read)? {
            for value in &part {
                let Some(key) = self.keys.parse(&value.key) else { continue };
                let Ok(record) = self.values.decode(key, value).await.map_err(Failure::of_read)? else {
                    continue;
                };
                if !record.value.owners().is_empty() {
                    found.push((record.key.clone(), record.value.owners().into()));
                }
            }
        }
        self.owners.end(found, pages.revision);
        // The result may be newer than the published revision; its changes are applied again later.
        self.latest.reach().await
    }

    pub(super) async fn deleting(&self) -> Result<Vec<Key>, StoreError> {
        self.latest.reach().await?;
        self.note_resources().await.map_err(Failure::of_read)?;
        let (mut keys, unread) = self.cache.deleting();
        for slot in unread {
            let range = self.keys.range(&slot.resource, None, None);
            let mut pages = Pages::new(&self.client, range, 0);
            while let Some(part) = pages.next(None).await.map_err(Failure::of_read)? {
                for value in &part {
                    let Some(key) = self.keys.parse(&value.key) else { continue };
                    let decoded = self.values.decode(key, value).await.map_err(Failure::of_read)?;
                    keys.extend(
                        decoded.ok().filter(|record| record.may_be_deleting()).map(|record| record.key),
                    );
                }
            }
        }
        keys.sort();
        Ok(keys)
    }

    /// Creates cache slots for all resources that have objects.
    pub(super) async fn note_resources(&self) -> Result<(), Failure> {
        self.resources().await?.iter().for_each(|resource| drop(self.cache.slot(resource)));
        Ok(())
    }

    /// Returns the resources that have objects, sorted.
    async fn resources(&self) -> Result<Vec<Resource>, Failure> {
        pages::resources(&self.client, &self.keys, 0).await
    }

    pub(super) async fn resources_in(&self, namespace: &str) -> Result<Vec<Resource>, StoreError> {
        if namespace.is_empty() {
            return Ok(Vec::new());
        }
        let mut resources = Vec::new();
        for resource in self.resources().await.map_err(Failure::of_read)? {
            if self.count(&resource, Some(namespace)).await.map_err(Failure::of_read)? > 0 {
                resources.push(resource);
            }
        }
        Ok(resources)
    }

    async fn count(&self, resource: &Resource, namespace: Option<&str>) -> Result<u64, Failure> {
        let (key, range_end) = self.keys.range(resource, namespace, None);
        let request = RangeRequest { key, range_end, count_only: true, ..RangeRequest::default() };
        Ok(u64::try_from(self.client.range(request).await?.count).unwrap_or(0))
    }

    pub(super) async fn counts(&self) -> Result<Vec<(Resource, u64)>, StoreError> {
        let mut counts = Vec::new();
        for resource in self.resources().await.map_err(Failure::of_read)? {
            let count = self.count(&resource, None).await.map_err(Failure::of_read)?;
            counts.push((resource, count));
        }
        Ok(counts)
    }

    pub(super) async fn average_sizes(&self) -> Result<Vec<(Resource, u64)>, StoreError> {
        let mut sizes = Vec::new();
        for resource in self.resources().await.map_err(Failure::of_read)? {
            let mut pages = Pages::new(&self.client, self.keys.range(&resource, None, None), 0);
            let sample = pages.next(Some(SAMPLE)).await.map_err(Failure::of_read)?.unwrap_or_default();
            let bytes: usize = sample.iter().map(|found| found.value.len()).sum();
            if !sample.is_empty() {
                sizes.push((resource, (bytes / sample.len()) as u64));
            }
        }
        Ok(sizes)
    }

    pub(super) fn has_seal_rules(&self) -> bool {
        self.values.seal.is_active()
    }

    pub(super) fn sealed_resources(&self) -> Vec<Resource> {
        self.values.seal.covered(self.cache.resources().into_values())
    }

    pub(super) async fn is_sealed_otherwise(&self, key: &Key, revision: i64) -> Result<bool, StoreError> {
        if !self.values.seal.covers(key.resource()) {
            return Ok(false);
        }
        let request = RangeRequest { key: self.keys.of(key).into_bytes(), ..RangeRequest::default() };
        let answer = self.client.range(request).await.map_err(Failure::of_read)?;
        let Some(found) = answer.kvs.first().filter(|found| found.mod_revision == revision) else {
            return Ok(false);
        };
        let stale = self.values.is_stale(key.resource(), found).await;
        stale.map_err(|error| StoreError::Sealed { key: key.clone(), reason: error.to_string() })
    }

    pub(super) async fn sealed_otherwise(&self, resource: &Resource) -> Result<SealedOtherwise, StoreError> {
        let mut pages = Pages::new(&self.client, self.keys.range(resource, None, None), 0);
        let mut counted = SealedOtherwise::default();
        while let Some(part) = pages.next(None).await.map_err(Failure::of_read)? {
            for found in &part {
                let Some(key) = self.keys.parse(&found.key) else { continue };
                counted.objects += 1;
                match self.values.is_stale(resource, found).await {
                    Ok(true) => counted.stale.push((key, found.mod_revision)),
                    Ok(false) => {}
                    Err(SealError::Refused { .. }) => counted.unreadable += 1,
                    Err(SealError::Unavailable { text: reason, .. }) => {
                        return Err(StoreError::Sealed { key, reason });
                    }
                }
            }
        }
        counted.stale.sort_by_key(|(_, revision)| *revision);
        Ok(counted)
    }
}
