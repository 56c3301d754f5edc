//! Finds and counts objects: from memory, by keys, or with a scan of the stored values.

use super::failure::EtcdFailure;
use super::pages::{self, Pages};
use super::reader::Reader;
use super::wire::RangeRequest;
use crate::error::StoreError;
use crate::key::{Key, Resource};
use crate::seal::SealError;
use crate::store::StaleSeals;

/// Number of objects in the sample from which the average size of a resource is computed.
const SAMPLE: usize = 32;

impl Reader {
    pub(super) async fn dependents(&self, owner_uid: &str) -> Result<Vec<Key>, StoreError> {
        self.ensure_owner_index().await?;
        Ok(self.owner_index.dependents(owner_uid))
    }

    pub(super) async fn owner_uids(&self) -> Result<Vec<String>, StoreError> {
        self.ensure_owner_index().await?;
        Ok(self.owner_index.all())
    }

    /// Ensures that the owner index is loaded and current.
    async fn ensure_owner_index(&self) -> Result<(), StoreError> {
        self.latest_revision.wait_linearizable().await?;
        if self.owner_index.is_loaded() {
            return Ok(());
        }
        let _one_reads = self.owner_index.load_lock.lock().await;
        if self.owner_index.is_loaded() {
            return Ok(());
        }
        self.owner_index.begin_load();
        let mut pages = Pages::new(&self.client, self.keys.all(), 0);
        let mut found = Vec::new();
        while let Some(page) = pages.next(None).await.map_err(EtcdFailure::into_store_error)? {
            for value in &page {
                let Some(key) = self.keys.parse(&value.key) else { continue };
                let Ok(record) =
                    self.values.decode(key, value).await.map_err(EtcdFailure::into_store_error)?
                else {
                    continue;
                };
                if !record.value.owners().is_empty() {
                    found.push((record.key.clone(), record.value.owners().into()));
                }
            }
        }
        self.owner_index.finish_load(found, pages.revision);
        // The result may be newer than the published revision; its changes are applied again later.
        self.latest_revision.wait_linearizable().await
    }

    pub(super) async fn terminating_keys(&self) -> Result<Vec<Key>, StoreError> {
        self.latest_revision.wait_linearizable().await?;
        self.note_resources().await.map_err(EtcdFailure::into_store_error)?;
        let (mut keys, uncached_slots) = self.cache.terminating_keys();
        for slot in uncached_slots {
            let range = self.keys.range(&slot.resource, None, None);
            let mut pages = Pages::new(&self.client, range, 0);
            while let Some(page) = pages.next(None).await.map_err(EtcdFailure::into_store_error)? {
                for value in &page {
                    let Some(key) = self.keys.parse(&value.key) else { continue };
                    let decoded =
                        self.values.decode(key, value).await.map_err(EtcdFailure::into_store_error)?;
                    keys.extend(
                        decoded.ok().filter(|record| record.may_be_terminating()).map(|record| record.key),
                    );
                }
            }
        }
        keys.sort();
        Ok(keys)
    }

    /// Creates cache slots for all resources that have objects.
    pub(super) async fn note_resources(&self) -> Result<(), EtcdFailure> {
        self.resources().await?.iter().for_each(|resource| drop(self.cache.slot(resource)));
        Ok(())
    }

    /// Returns the resources that have objects, sorted.
    async fn resources(&self) -> Result<Vec<Resource>, EtcdFailure> {
        pages::resources(&self.client, &self.keys, 0).await
    }

    pub(super) async fn resources_in(&self, namespace: &str) -> Result<Vec<Resource>, StoreError> {
        if namespace.is_empty() {
            return Ok(Vec::new());
        }
        let mut resources = Vec::new();
        for resource in self.resources().await.map_err(EtcdFailure::into_store_error)? {
            if self.count(&resource, Some(namespace)).await.map_err(EtcdFailure::into_store_error)? > 0 {
                resources.push(resource);
            }
        }
        Ok(resources)
    }

    async fn count(&self, resource: &Resource, namespace: Option<&str>) -> Result<u64, EtcdFailure> {
        let (key, range_end) = self.keys.range(resource, namespace, None);
        let request = RangeRequest { key, range_end, count_only: true, ..RangeRequest::default() };
        Ok(u64::try_from(self.client.range(request).await?.count).unwrap_or(0))
    }

    pub(super) async fn object_counts(&self) -> Result<Vec<(Resource, u64)>, StoreError> {
        let mut counts = Vec::new();
        for resource in self.resources().await.map_err(EtcdFailure::into_store_error)? {
            let count = self.count(&resource, None).await.map_err(EtcdFailure::into_store_error)?;
            counts.push((resource, count));
        }
        Ok(counts)
    }

    pub(super) async fn average_sizes(&self) -> Result<Vec<(Resource, u64)>, StoreError> {
        let mut sizes = Vec::new();
        for resource in self.resources().await.map_err(EtcdFailure::into_store_error)? {
            let mut pages = Pages::new(&self.client, self.keys.range(&resource, None, None), 0);
            let sample =
                pages.next(Some(SAMPLE)).await.map_err(EtcdFailure::into_store_error)?.unwrap_or_default();
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
        self.values.seal.covered_resources(self.cache.resources().into_values())
    }

    pub(super) async fn has_stale_seal(&self, key: &Key, revision: i64) -> Result<bool, StoreError> {
        if !self.values.seal.covers(key.resource()) {
            return Ok(false);
        }
        let request = RangeRequest { key: self.keys.object_key(key).into_bytes(), ..RangeRequest::default() };
        let response = self.client.range(request).await.map_err(EtcdFailure::into_store_error)?;
        let Some(found) = response.kvs.first().filter(|found| found.mod_revision == revision) else {
            return Ok(false);
        };
        let stale = self.values.has_stale_seal(key.resource(), found).await;
        stale.map_err(|error| StoreError::Sealed { key: key.clone(), reason: error.to_string() })
    }

    pub(super) async fn stale_seals(&self, resource: &Resource) -> Result<StaleSeals, StoreError> {
        let mut pages = Pages::new(&self.client, self.keys.range(resource, None, None), 0);
        let mut counted = StaleSeals::default();
        while let Some(page) = pages.next(None).await.map_err(EtcdFailure::into_store_error)? {
            for found in &page {
                let Some(key) = self.keys.parse(&found.key) else { continue };
                counted.objects += 1;
                match self.values.has_stale_seal(resource, found).await {
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
