//! Source of copies from etcd. Values are opened, decoded, and sealed again in the form of other databases, because values in
//! etcd have their own encoding.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::compaction::RevisionMarks;
use super::events;
use super::failure::EtcdFailure;
use super::gate::Gate;
use super::object_codec::ObjectCodec;
use super::pages::{self, Pages};
use super::prefix::EtcdPrefix;
use super::reader::Reader;
use super::settings::EtcdSettings;
use super::wire::{KeyValue, RangeRequest, WatchEvent, WatchEventType};
use crate::codec;
use crate::copy::{
    Changes, CopyError, CopySource, PAGE_BYTES, PAGE_STATES, StoreExtent, StoredState, page_length,
};
use crate::key::{Key, Resource};
use crate::record::Value;

/// Initial number of keys per page, increased once their sizes are known.
const INITIAL_PAGE_KEYS: i64 = 32;
/// Maximum number of revisions by which etcd may advance, through other prefixes and expiring objects, until watches of a
/// migrated store have ended.
const MAX_REVISION_DRIFT: i64 = 1_000_000;

/// Source of copies from etcd.
pub struct EtcdSource {
    prefix: EtcdPrefix,
    /// Revisions by time, if this process records them.
    marks: Option<Arc<RevisionMarks>>,
    /// Resources at the revision that is read.
    resources: Mutex<Option<(i64, Arc<[Resource]>)>>,
    /// Number of keys per page.
    page_keys: AtomicI64,
}

impl EtcdSource {
    /// Opens a prefix, which any server may use. `codec` must be able to decrypt its values.
    ///
    /// # Errors
    /// [`CopyError`].
    pub async fn open(settings: &EtcdSettings, codec: ObjectCodec) -> Result<Self, CopyError> {
        let prefix = EtcdPrefix::open(settings, codec).await?;
        if matches!(prefix.gate().await?, Gate::Restoring(_)) {
            return Err(CopyError::HalfRestored(prefix.name().to_owned()));
        }
        if !prefix.is_used().await? && !prefix.meta().await?.was_opened() {
            return Err(prefix.store_error("no store found"));
        }
        Ok(Self::with_prefix(prefix, None))
    }

    /// Returns the source of a store in this process.
    pub(super) fn from_store(reader: &Reader, marks: Arc<RevisionMarks>) -> Self {
        Self::with_prefix(EtcdPrefix::from_store(reader, "etcd".to_owned()), Some(marks))
    }

    fn with_prefix(prefix: EtcdPrefix, marks: Option<Arc<RevisionMarks>>) -> Self {
        Self { prefix, marks, resources: Mutex::default(), page_keys: AtomicI64::new(INITIAL_PAGE_KEYS) }
    }

    /// Returns the current objects of a resource in a namespace.
    ///
    /// # Errors
    /// [`CopyError`].
    pub async fn objects(&self, resource: &Resource, namespace: &str) -> Result<Vec<StoredState>, CopyError> {
        let range = self.prefix.keys.range(resource, Some(namespace), None);
        let mut pages = Pages::new(&self.prefix.client, range, 0);
        let mut states = Vec::new();
        while let Some(page) = pages.next(None).await.map_err(|failure| self.prefix.copy_error(failure))? {
            for found in &page {
                let Some(key) = self.prefix.keys.parse(&found.key) else { continue };
                states.push(self.state(key, found, found.mod_revision, 0).await?);
            }
        }
        Ok(states)
    }

    /// Converts the failure of a read at a revision.
    async fn read_error(&self, revision: i64, failure: EtcdFailure) -> CopyError {
        if !failure.is_compacted() {
            return self.prefix.copy_error(failure);
        }
        match self.prefix.extent().await {
            Ok(extent) => CopyError::Compacted { revision, oldest: extent.oldest },
            Err(error) => error,
        }
    }

    /// Returns the resources that had objects at a revision.
    async fn resources(&self, revision: i64) -> Result<Arc<[Resource]>, CopyError> {
        let cached =
            self.resources.lock().clone().filter(|(cached_revision, _)| *cached_revision == revision);
        if let Some((_, resources)) = cached {
            return Ok(resources);
        }
        let resources = pages::resources(&self.prefix.client, &self.prefix.keys, revision).await;
        let resources: Arc<[Resource]> = match resources {
            Ok(resources) => resources.into(),
            Err(failure) => return Err(self.read_error(revision, failure).await),
        };
        *self.resources.lock() = Some((revision, Arc::clone(&resources)));
        Ok(resources)
    }

    async fn read_states(&self, revision: i64, after: Option<&Key>) -> Result<Vec<StoredState>, CopyError> {
        for resource in self.resources(revision).await?.iter() {
            let after_path = match after {
                Some(after) if after.resource() > resource => continue,
                Some(after) if after.resource() == resource => Some(after.path()),
                _ => None,
            };
            let states = self.page(resource, revision, after_path).await?;
            if !states.is_empty() {
                return Ok(states);
            }
        }
        Ok(Vec::new())
    }

    /// Returns the next states of a resource.
    async fn page(
        &self,
        resource: &Resource,
        revision: i64,
        after: Option<&str>,
    ) -> Result<Vec<StoredState>, CopyError> {
        let (mut key, range_end) = self.prefix.keys.range(resource, None, after);
        while key < range_end {
            let limit = self.page_keys.load(Ordering::Relaxed);
            let request = RangeRequest {
                key,
                range_end: range_end.clone(),
                limit,
                revision,
                ..RangeRequest::default()
            };
            let response = match self.prefix.client.range(request).await {
                Ok(response) => response,
                Err(failure) => return Err(self.read_error(revision, failure).await),
            };
            let Some(last) = response.kvs.last() else { break };
            key = [&*last.key, b"\0"].concat();
            self.adjust_page_size(&response.kvs);
            let mut states = Vec::with_capacity(response.kvs.len());
            for found in &response.kvs {
                let Some(key) = self.prefix.keys.parse(&found.key) else { continue };
                // The superseded state is part of the history, which a copy does not contain.
                states.push(self.state(key, found, found.mod_revision, 0).await?);
            }
            if !states.is_empty() {
                let sizes: Vec<i64> = states.iter().map(size).collect();
                states.truncate(usize::try_from(page_length(&sizes)).unwrap_or(1));
                return Ok(states);
            }
            if !response.more {
                break;
            }
        }
        Ok(Vec::new())
    }

    /// Adjusts the number of keys per page to the sizes of these keys.
    fn adjust_page_size(&self, found: &[KeyValue]) {
        let count = i64::try_from(found.len()).unwrap_or(1).max(1);
        let bytes: i64 = found.iter().map(|found| i64::try_from(found.value.len()).unwrap_or(0)).sum();
        let fitting_keys = PAGE_BYTES / (bytes / count).max(1);
        let max_keys = (2 * self.page_keys.load(Ordering::Relaxed)).min(PAGE_STATES as i64);
        self.page_keys.store(fitting_keys.clamp(1, max_keys), Ordering::Relaxed);
    }

    /// Decodes an existing state.
    async fn state(
        &self,
        key: Key,
        found: &KeyValue,
        revision: i64,
        previous: i64,
    ) -> Result<StoredState, CopyError> {
        let decoded = self.prefix.values.decode(key, found).await;
        match decoded.map_err(|failure| self.prefix.copy_error(failure))? {
            Ok(record) => self.to_stored_state(record.key, &record.value, revision, previous),
            Err(object) => {
                let (key, reason) = (object.key().clone(), object.reason().to_owned());
                Err(CopyError::Unopened { key, reason })
            }
        }
    }

    /// Encodes a value in the form of other databases.
    fn to_stored_state(
        &self,
        key: Key,
        value: &Value,
        revision: i64,
        previous: i64,
    ) -> Result<StoredState, CopyError> {
        let sealed = match self.prefix.values.seal.seal(&key, value.json()) {
            Ok(sealed) => sealed,
            Err(error) => return Err(CopyError::Unopened { key, reason: error.to_string() }),
        };
        let stored =
            sealed.map_or_else(|| codec::encode(value.json()), |sealed| codec::encode_sealed(&sealed));
        let owners = value.owners().iter().map(|owner| owner.to_string()).collect();
        let uid = value.uid().to_owned();
        Ok(StoredState { key, revision, uid, previous, deleted: false, value: stored, owners: Some(owners) })
    }

    /// Decodes the content of an event of an API object.
    async fn decode_change(&self, event: &WatchEvent) -> Result<Option<StoredState>, CopyError> {
        let Some(kv) = &event.kv else { return Ok(None) };
        let Some(key) = self.prefix.keys.parse(&kv.key) else { return Ok(None) };
        let revision = kv.mod_revision;
        let previous = event.prev_kv.as_ref().map_or(0, |previous_kv| previous_kv.mod_revision);
        if event.event_type != i32::from(WatchEventType::Delete) {
            return self.state(key, kv, revision, previous).await.map(Some);
        }
        let last = match &event.prev_kv {
            Some(previous_kv) => self.prefix.values.decode(key.clone(), previous_kv).await.map(Result::ok),
            None => Ok(None),
        };
        let last = last.map_err(|failure| self.prefix.copy_error(failure))?;
        let value = last.map_or_else(|| events::name_only(&key), |record| record.value);
        let state = self.to_stored_state(key, &value, revision, previous)?;
        Ok(Some(StoredState { deleted: true, owners: Some(Vec::new()), ..state }))
    }

    async fn read_changes(&self, after: i64) -> Result<Changes, CopyError> {
        let current = self.prefix.meta().await?.revision;
        let mut changes = Changes { states: Vec::new(), until: after, revision: current.max(after) };
        if current <= after {
            return Ok(changes);
        }
        let failed = |failure| self.prefix.copy_error(failure);
        let (mut parts, mut bytes) = (Vec::new(), 0);
        let mut watch = self.prefix.client.watch(self.prefix.keys.all(), after + 1).await.map_err(failed)?;
        while changes.until < current {
            let mut response =
                self.prefix.client.with_timeout(watch.next_or_progress()).await.map_err(failed)?;
            if response.canceled {
                return Err(match response.compact_revision {
                    0 => self.prefix.store_error(response.cancel_reason),
                    oldest => CopyError::Compacted { revision: after, oldest },
                });
            }
            let is_progress_notification =
                parts.is_empty() && response.events.is_empty() && !response.created;
            parts.append(&mut response.events);
            for event in events::take_complete(&mut parts, response.fragment) {
                let is_full = bytes >= PAGE_BYTES || changes.states.len() >= PAGE_STATES;
                // Changes with the same revision stay in the same part.
                if is_full && event.revision() > changes.until {
                    return Ok(changes);
                }
                changes.until = event.revision();
                let change = self.decode_change(&event).await?;
                bytes += change.as_ref().map_or(0, size);
                changes.states.extend(change);
            }
            if is_progress_notification {
                let revision = response.header.unwrap_or_default().revision;
                changes.until = changes.until.max(revision);
            }
        }
        changes.revision = changes.revision.max(changes.until);
        Ok(changes)
    }
}

fn size(state: &StoredState) -> i64 {
    i64::try_from(state.value.len()).unwrap_or(i64::MAX)
}

impl CopySource for EtcdSource {
    fn extent(&self) -> BoxFuture<'_, Result<StoreExtent, CopyError>> {
        Box::pin(self.prefix.extent())
    }

    fn states<'a>(
        &'a self,
        revision: i64,
        after: Option<&'a Key>,
    ) -> BoxFuture<'a, Result<Vec<StoredState>, CopyError>> {
        Box::pin(self.read_states(revision, after))
    }

    fn changes(&self, after: i64) -> BoxFuture<'_, Result<Changes, CopyError>> {
        Box::pin(self.read_changes(after))
    }

    fn revision_at(&self, time: i64) -> BoxFuture<'_, Result<i64, CopyError>> {
        let marks = self.marks.as_ref().ok_or_else(|| CopyError::NoTimes(self.prefix.name().to_owned()));
        Box::pin(std::future::ready(marks.map(|marks| marks.revision_at(time))))
    }

    fn max_revision_drift(&self) -> i64 {
        MAX_REVISION_DRIFT
    }
}
