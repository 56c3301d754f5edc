//! Source of copies from etcd. Values are opened, decoded, and sealed again in the form of other databases, because values in
//! etcd have their own encoding.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::compaction::Marks;
use super::events;
use super::failure::Failure;
use super::gate::Gate;
use super::known::Known;
use super::pages::{self, Pages};
use super::place::Place;
use super::read::Reader;
use super::settings::EtcdSettings;
use super::wire::{KeyValue, RangeRequest, WatchEvent, WatchEventType};
use crate::codec;
use crate::copy::{Changes, CopyError, CopySource, Extent, PAGE_BYTES, PAGE_STATES, StoredState, page_of};
use crate::key::{Key, Resource};
use crate::record::Value;

/// Initial number of keys per page, increased once their sizes are known.
const FIRST_KEYS: i64 = 32;
/// Maximum number of revisions by which etcd may advance, through other prefixes and expiring objects, until watches of a
/// migrated store have ended.
const OTHERS: i64 = 1_000_000;

/// Source of copies from etcd.
pub struct EtcdSource {
    place: Place,
    /// Revisions by time, if this process records them.
    marks: Option<Arc<Marks>>,
    /// Resources at the revision that is read.
    resources: Mutex<Option<(i64, Arc<[Resource]>)>>,
    /// Number of keys per page.
    keys: AtomicI64,
}

impl EtcdSource {
    /// Opens a prefix, which any server may use. `codec` must be able to decrypt its values.
    ///
    /// # Errors
    /// [`CopyError`].
    pub async fn open(settings: &EtcdSettings, known: Known) -> Result<Self, CopyError> {
        let place = Place::open(settings, known).await?;
        if matches!(place.gate().await?, Gate::Restoring(_)) {
            return Err(CopyError::HalfRestored(place.name().to_owned()));
        }
        if !place.is_used().await? && !place.meta().await?.was_opened() {
            return Err(place.store("no store found"));
        }
        Ok(Self::of(place, None))
    }

    /// Returns the source of a store in this process.
    pub(super) fn of_store(reader: &Reader, marks: Arc<Marks>) -> Self {
        Self::of(Place::of_store(reader, "etcd".to_owned()), Some(marks))
    }

    fn of(place: Place, marks: Option<Arc<Marks>>) -> Self {
        Self { place, marks, resources: Mutex::default(), keys: AtomicI64::new(FIRST_KEYS) }
    }

    /// Returns the current objects of a resource in a namespace.
    ///
    /// # Errors
    /// [`CopyError`].
    pub async fn objects(&self, resource: &Resource, namespace: &str) -> Result<Vec<StoredState>, CopyError> {
        let range = self.place.keys.range(resource, Some(namespace), None);
        let mut pages = Pages::new(&self.place.client, range, 0);
        let mut states = Vec::new();
        while let Some(part) = pages.next(None).await.map_err(|failure| self.place.failed(failure))? {
            for found in &part {
                let Some(key) = self.place.keys.parse(&found.key) else { continue };
                states.push(self.state(key, found, found.mod_revision, 0).await?);
            }
        }
        Ok(states)
    }

    /// Converts the failure of a read at a revision.
    async fn failed_at(&self, revision: i64, failure: Failure) -> CopyError {
        if !failure.is_compacted() {
            return self.place.failed(failure);
        }
        match self.place.extent().await {
            Ok(extent) => CopyError::Compacted { revision, oldest: extent.oldest },
            Err(error) => error,
        }
    }

    /// Returns the resources that had objects at a revision.
    async fn resources(&self, revision: i64) -> Result<Arc<[Resource]>, CopyError> {
        let known = self.resources.lock().clone().filter(|(of, _)| *of == revision);
        if let Some((_, resources)) = known {
            return Ok(resources);
        }
        let resources = pages::resources(&self.place.client, &self.place.keys, revision).await;
        let resources: Arc<[Resource]> = match resources {
            Ok(resources) => resources.into(),
            Err(failure) => return Err(self.failed_at(revision, failure).await),
        };
        *self.resources.lock() = Some((revision, Arc::clone(&resources)));
        Ok(resources)
    }

    async fn read_states(&self, revision: i64, after: Option<&Key>) -> Result<Vec<StoredState>, CopyError> {
        for resource in self.resources(revision).await?.iter() {
            let behind = match after {
                Some(after) if after.resource() > resource => continue,
                Some(after) if after.resource() == resource => Some(after.path()),
                _ => None,
            };
            let states = self.page(resource, revision, behind).await?;
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
        behind: Option<&str>,
    ) -> Result<Vec<StoredState>, CopyError> {
        let (mut key, range_end) = self.place.keys.range(resource, None, behind);
        while key < range_end {
            let limit = self.keys.load(Ordering::Relaxed);
            let request = RangeRequest {
                key,
                range_end: range_end.clone(),
                limit,
                revision,
                ..RangeRequest::default()
            };
            let answer = match self.place.client.range(request).await {
                Ok(answer) => answer,
                Err(failure) => return Err(self.failed_at(revision, failure).await),
            };
            let Some(last) = answer.kvs.last() else { break };
            key = [&*last.key, b"\0"].concat();
            self.note_sizes(&answer.kvs);
            let mut states = Vec::with_capacity(answer.kvs.len());
            for found in &answer.kvs {
                let Some(key) = self.place.keys.parse(&found.key) else { continue };
                // The superseded state is part of the history, which a copy does not contain.
                states.push(self.state(key, found, found.mod_revision, 0).await?);
            }
            if !states.is_empty() {
                let sizes: Vec<i64> = states.iter().map(size).collect();
                states.truncate(usize::try_from(page_of(&sizes)).unwrap_or(1));
                return Ok(states);
            }
            if !answer.more {
                break;
            }
        }
        Ok(Vec::new())
    }

    /// Adjusts the number of keys per page to the sizes of these keys.
    fn note_sizes(&self, found: &[KeyValue]) {
        let count = i64::try_from(found.len()).unwrap_or(1).max(1);
        let bytes: i64 = found.iter().map(|found| i64::try_from(found.value.len()).unwrap_or(0)).sum();
        let fitting = PAGE_BYTES / (bytes / count).max(1);
        let most = (2 * self.keys.load(Ordering::Relaxed)).min(PAGE_STATES as i64);
        self.keys.store(fitting.clamp(1, most), Ordering::Relaxed);
    }

    /// Decodes an existing state.
    async fn state(
        &self,
        key: Key,
        found: &KeyValue,
        revision: i64,
        previous: i64,
    ) -> Result<StoredState, CopyError> {
        let decoded = self.place.values.decode(key, found).await;
        match decoded.map_err(|failure| self.place.failed(failure))? {
            Ok(record) => self.stored(record.key, &record.value, revision, previous),
            Err(object) => {
                let (key, reason) = (object.key().clone(), object.reason().to_owned());
                Err(CopyError::Unopened { key, reason })
            }
        }
    }

    /// Encodes a value in the form of other databases.
    fn stored(
        &self,
        key: Key,
        value: &Value,
        revision: i64,
        previous: i64,
    ) -> Result<StoredState, CopyError> {
        let sealed = match self.place.values.seal.seal(&key, value.json()) {
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
    async fn change(&self, event: &WatchEvent) -> Result<Option<StoredState>, CopyError> {
        let Some(kv) = &event.kv else { return Ok(None) };
        let Some(key) = self.place.keys.parse(&kv.key) else { return Ok(None) };
        let revision = kv.mod_revision;
        let previous = event.prev_kv.as_ref().map_or(0, |before| before.mod_revision);
        if event.event_type != i32::from(WatchEventType::Delete) {
            return self.state(key, kv, revision, previous).await.map(Some);
        }
        let last = match &event.prev_kv {
            Some(before) => self.place.values.decode(key.clone(), before).await.map(Result::ok),
            None => Ok(None),
        };
        let last = last.map_err(|failure| self.place.failed(failure))?;
        let value = last.map_or_else(|| events::name_alone(&key), |record| record.value);
        let state = self.stored(key, &value, revision, previous)?;
        Ok(Some(StoredState { deleted: true, owners: Some(Vec::new()), ..state }))
    }

    async fn read_changes(&self, after: i64) -> Result<Changes, CopyError> {
        let current = self.place.meta().await?.revision;
        let mut changes = Changes { states: Vec::new(), until: after, revision: current.max(after) };
        if current <= after {
            return Ok(changes);
        }
        let failed = |failure| self.place.failed(failure);
        let (mut parts, mut bytes) = (Vec::new(), 0);
        let mut watch = self.place.client.watch(self.place.keys.all(), after + 1).await.map_err(failed)?;
        while changes.until < current {
            let mut response = self.place.client.in_time(watch.next_or_progress()).await.map_err(failed)?;
            if response.canceled {
                return Err(match response.compact_revision {
                    0 => self.place.store(response.cancel_reason),
                    oldest => CopyError::Compacted { revision: after, oldest },
                });
            }
            let is_report = parts.is_empty() && response.events.is_empty() && !response.created;
            parts.append(&mut response.events);
            for event in events::whole(&mut parts, response.fragment) {
                let is_full = bytes >= PAGE_BYTES || changes.states.len() >= PAGE_STATES;
                // Changes with the same revision stay in the same part.
                if is_full && event.revision() > changes.until {
                    return Ok(changes);
                }
                changes.until = event.revision();
                let change = self.change(&event).await?;
                bytes += change.as_ref().map_or(0, size);
                changes.states.extend(change);
            }
            if is_report {
                let reached = response.header.unwrap_or_default().revision;
                changes.until = changes.until.max(reached);
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
    fn extent(&self) -> BoxFuture<'_, Result<Extent, CopyError>> {
        Box::pin(self.place.extent())
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
        let marks = self.marks.as_ref().ok_or_else(|| CopyError::NoTimes(self.place.name().to_owned()));
        Box::pin(std::future::ready(marks.map(|marks| marks.revision_at(time))))
    }

    fn moves_on_by(&self) -> i64 {
        OTHERS
    }
}
