//! Conversion between the stored version and the version of a request.
//!
//! All code above this module works with objects in one version; conversion happens where objects are read from or written to the
//! store. An object that was stored in the requested version with the current schema is passed on without decoding. Other objects
//! take upstream's steps: update to the current schema of their stored version, including defaults; conversion; pruning by the
//! schema of the requested version, without defaults.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use portico_kit::lifecycle::Signal;
use portico_machinery::status::Reason;
use portico_machinery::{Object, Status};
use portico_store::{Event, EventType, Record, Snapshot, Value};

use super::CustomVersion;
use super::definition_facts::{ConversionWebhook, DefinitionFacts, DefinitionVersion};
use super::served_versions::SharedState;
use crate::Result;
use crate::definition::is_ca_bundle;
use crate::encoding;
use crate::failure;
use crate::objects::Objects;
use crate::selection::Selection;
use crate::served_resource::ServedResource;
use crate::stored_object::{self, StoredObject};

impl CustomVersion {
    /// Creates a version; objects written up to `since_revision` may have been validated by an older schema.
    pub(super) fn new(
        facts: &Arc<DefinitionFacts>,
        version: &DefinitionVersion,
        since_revision: i64,
        shared: &SharedState,
        superseded: Signal,
    ) -> Option<Self> {
        let group = facts.group();
        let stored_as = facts.storage().map_or_else(String::new, |v| format!("{group}/{}", v.name));
        let (schemas, health) = (Arc::clone(&shared.schemas), Arc::clone(&shared.health));
        let schema = schemas.get(&version.name)?.clone();
        let json_prefix = json_prefix(&format!("{group}/{}", version.name));
        let scale = version.subresources.scale.clone();
        let (facts, endpoint) = (Arc::clone(facts), OnceLock::new());
        let webhook = webhook_of(&facts);
        let has_sound_ca_bundle =
            webhook.is_none_or(|webhook| is_ca_bundle(&webhook.client_config.ca_bundle));
        Some(Self {
            facts,
            stored_as,
            json_prefix,
            schema,
            schemas,
            endpoint,
            has_sound_ca_bundle,
            health,
            since_revision,
            scale,
            superseded,
        })
    }

    /// Status 410 for a watch that starts before the definition served its current versions, when objects looked different. The
    /// client has to list again, as in upstream.
    pub(crate) fn watch_start_error(&self, revision: i64) -> Option<Status> {
        let since_revision = self.since_revision;
        (revision < since_revision)
            .then(|| Status::expired(format!("too old resource version: {revision} ({since_revision})")))
    }

    /// True if a stored object can be used without conversion.
    fn is_current(&self, record: &Record) -> bool {
        let json = record.value.json();
        json.starts_with(&self.json_prefix)
            && (record.revision > self.since_revision || self.schema.is_coerced_and_defaulted(json))
    }

    /// Conversion webhook; `None` if conversion only changes `apiVersion`.
    pub(crate) fn webhook(&self) -> Option<&ConversionWebhook> {
        webhook_of(&self.facts)
    }

    /// Decodes a stored object and updates it to the current schema of its stored version.
    fn with_current_schema(&self, record: &Record) -> Result<Object> {
        let mut object = stored_object::content(record);
        let api_version = object.api_version();
        let version = api_version.strip_prefix(self.facts.group()).and_then(|rest| rest.strip_prefix('/'));
        let Some(schema) = version.and_then(|version| self.schemas.get(version)) else {
            let message = "request to convert CR from an invalid group/version";
            return Err(Box::new(Status::failure(Reason::Unknown, format!("{message}: {api_version}"))));
        };
        schema.coerce_and_default(&mut object);
        Ok(object)
    }
}

impl ServedResource {
    /// True if the result of a selection may depend on the version of the objects, so that it must be evaluated after conversion.
    pub(crate) fn selects_after_conversion(&self, selection: &Selection) -> bool {
        let Some(custom) = &self.custom else { return false };
        // Only webhooks change labels.
        selection.needs_decoding() || custom.webhook().is_some() && selection.has_label_selector()
    }

    /// Sets defaults in parts that a write has created without them, such as a dropped status or the parent of a scale field.
    /// Objects that are converted before they are stored get the defaults of the stored version then.
    pub(crate) fn default_missing_parts(&self, object: &mut Object) {
        if self.custom.as_ref().is_some_and(|custom| custom.stored_as == self.api_version) {
            self.info.schema.default(object);
            self.info.schema.normalize(object);
        }
    }

    /// Record of a converted object, with the key and revision of the stored one.
    fn converted_record(&self, record: &Record, mut object: Object) -> Result<Arc<Record>> {
        object.set(&["apiVersion"], &self.api_version);
        self.info.schema.coerce(&mut object);
        self.info.schema.normalize(&mut object);
        let value = encoding::encode(self, &mut object)?;
        Ok(Arc::new(Record { key: record.key.clone(), revision: record.revision, value }))
    }
}

impl Objects {
    /// Converts a stored object to the version of a request.
    pub(crate) async fn convert_for_request(
        &self,
        served_resource: &ServedResource,
        record: Arc<Record>,
    ) -> Result<Arc<Record>> {
        match &served_resource.custom {
            Some(custom) if !custom.is_current(&record) => {
                single(self.convert_all(served_resource, custom, vec![record]).await?)
            }
            _ => Ok(record),
        }
    }

    /// Converts stored objects to the version of a request, in order. Calls a webhook only for states that are not in the cache
    /// of representations; upstream's watch cache also stores converted objects.
    pub(crate) async fn convert_all_for_request(
        &self,
        served_resource: &ServedResource,
        mut records: Vec<Arc<Record>>,
    ) -> Result<Vec<Arc<Record>>> {
        let Some(custom) = &served_resource.custom else { return Ok(records) };
        let uses_cache = custom.webhook().is_some();
        let mut missing = Vec::new();
        for (index, record) in records.iter_mut().enumerate().filter(|(_, record)| !custom.is_current(record))
        {
            match uses_cache.then(|| self.forms.converted(served_resource.id, record)).flatten() {
                Some(converted) => *record = converted,
                None => missing.push(index),
            }
        }
        if missing.is_empty() {
            return Ok(records);
        }
        let stored = missing.iter().map(|index| Arc::clone(&records[*index])).collect();
        let converted = self.convert_all(served_resource, custom, stored).await?;
        // After the webhook call, during which states may have been replaced.
        let current_states = uses_cache.then(|| CurrentStates::new(self, served_resource));
        for (index, converted) in missing.into_iter().zip(converted) {
            if current_states.as_ref().is_some_and(|current| current.has(&converted)) {
                self.forms.insert_converted(served_resource.id, &converted);
            }
            records[index] = converted;
        }
        Ok(records)
    }

    /// Converts stored objects to the version of a request, all of which need conversion.
    async fn convert_all(
        &self,
        served_resource: &ServedResource,
        custom: &CustomVersion,
        records: Vec<Arc<Record>>,
    ) -> Result<Vec<Arc<Record>>> {
        let objects =
            records.iter().map(|record| custom.with_current_schema(record)).collect::<Result<_>>()?;
        let converted = self.convert(custom, &served_resource.api_version, objects).await?;
        records
            .iter()
            .zip(converted)
            .map(|(record, object)| served_resource.converted_record(record, object))
            .collect()
    }

    /// Converts the objects of an event to the version of a watch; the previous object only if the selection requires it. Watches
    /// share converted objects.
    pub(crate) async fn convert_event_for_request(
        &self,
        served_resource: &ServedResource,
        event: Arc<Event>,
        selection: &Selection,
    ) -> Result<Arc<Event>> {
        let Some(custom) = &served_resource.custom else { return Ok(event) };
        let has_selector = !selection.matches_all();
        let before = event.previous.as_ref().filter(|before| has_selector && !before.value.is_unreadable());
        if custom.is_current(&event.record) && before.is_none_or(|record| custom.is_current(record)) {
            return Ok(event);
        }
        let mut converted = Event::clone(&event);
        converted.record = self.convert_shared(served_resource, custom, &event.record).await?;
        // Lists can use the object until the next event. A watch that replays history has states that lists no longer return.
        let may_be_cached = custom.webhook().is_some() && event.event_type != EventType::Deleted;
        if may_be_cached && CurrentStates::new(self, served_resource).has(&event.record) {
            self.forms.insert_converted(served_resource.id, &converted.record);
        }
        if let Some(before) = before {
            converted.previous = Some(self.convert_shared(served_resource, custom, before).await?);
        }
        Ok(Arc::new(converted))
    }

    async fn convert_shared(
        &self,
        served_resource: &ServedResource,
        custom: &CustomVersion,
        record: &Arc<Record>,
    ) -> Result<Arc<Record>> {
        if custom.is_current(record) {
            return Ok(Arc::clone(record));
        }
        if let Some(converted) = self.forms.converted(served_resource.id, record) {
            return Ok(converted);
        }
        let make = || self.convert_for_request(served_resource, Arc::clone(record));
        self.converted.get_or_make((served_resource.id, record.revision), make).await
    }

    /// Converts a record that was just committed to the version of the request; `object` is its decoded content.
    pub(crate) async fn committed_object(
        &self,
        served_resource: &ServedResource,
        record: Arc<Record>,
        object: Object,
    ) -> Result<StoredObject> {
        match &served_resource.custom {
            Some(custom) if custom.stored_as != served_resource.api_version => {
                Ok(StoredObject::new(self.convert_for_request(served_resource, record).await?))
            }
            // Internal callers will not decode it, so it is not cached.
            Some(_) => Ok(self.recent.get_or_insert(record)),
            None => Ok(self.recent.insert_written(record, object)),
        }
    }

    /// Converts a record that is not stored (dry run) or already removed to the version of the request.
    pub(crate) async fn uncommitted_object(
        &self,
        served_resource: &ServedResource,
        record: Record,
    ) -> Result<StoredObject> {
        Ok(StoredObject::new(self.convert_for_request(served_resource, Arc::new(record)).await?))
    }

    /// Encodes an object of the request's version for the store. The defaults of the storage version are stored with it, so that
    /// reads in that version need no decoding.
    pub(crate) async fn encode_for_storage(
        &self,
        served_resource: &ServedResource,
        object: &mut Object,
    ) -> Result<Value> {
        served_resource.info.schema.floats_to_integers(object);
        let custom =
            served_resource.custom.as_ref().filter(|custom| custom.stored_as != served_resource.api_version);
        let Some(custom) = custom else { return encoding::encode(served_resource, object) };
        let mut converted = object.clone();
        converted.remove(&["metadata", "resourceVersion"]);
        let mut stored = self.convert_one(custom, &custom.stored_as, converted).await?;
        stored.set(&["apiVersion"], &custom.stored_as);
        let schema = custom.facts.storage().and_then(|version| custom.schemas.get(&version.name));
        let schema = schema.ok_or_else(|| Box::new(Status::internal("the storage version has no schema")))?;
        schema.coerce_and_default(&mut stored);
        schema.normalize(&mut stored);
        encoding::encode(served_resource, &mut stored)
    }

    /// True if an unchanged object must be written nevertheless: its stored version or schema is outdated in a visible way, or it
    /// is not encrypted as configured (`staleness` in upstream's `GuaranteedUpdate`).
    pub(crate) async fn needs_rewrite(
        &self,
        served_resource: &ServedResource,
        current: &Record,
        object: &Object,
    ) -> Result<bool> {
        let key = &current.key;
        let has_stale_seal = self.store.has_stale_seal(key, current.revision).await;
        if has_stale_seal.map_err(|error| failure::from_store_error(error, 0))? {
            return Ok(true);
        }
        let Some(custom) = &served_resource.custom else { return Ok(false) };
        let found = self.find(served_resource, key.namespace(), key.name()).await?;
        let Some(Ok(record)) = found.object else { return Ok(false) };
        if record.revision > custom.since_revision
            && record.value.json().starts_with(&json_prefix(&custom.stored_as))
        {
            return Ok(false);
        }
        let value = self.encode_for_storage(served_resource, &mut object.clone()).await?;
        Ok(value.json() != record.value.json())
    }

    /// Converts an object to another version; without a webhook the object is unchanged.
    pub(crate) async fn convert_one(
        &self,
        custom: &CustomVersion,
        desired_api_version: &str,
        object: Object,
    ) -> Result<Object> {
        single(self.convert(custom, desired_api_version, vec![object]).await?)
    }

    /// Converts objects to another version, in order; without a webhook they are unchanged.
    async fn convert(
        &self,
        custom: &CustomVersion,
        desired_api_version: &str,
        objects: Vec<Object>,
    ) -> Result<Vec<Object>> {
        match custom.webhook() {
            Some(webhook) => {
                // Boxed: webhooks are rare, and the future would otherwise enlarge those of all reads and writes.
                let conversion: BoxFuture<'_, _> =
                    Box::pin(self.convert_by_webhook(custom, webhook, desired_api_version, objects));
                conversion.await
            }
            None => Ok(objects),
        }
    }
}

/// Current states of a resource, if they are in memory.
struct CurrentStates(Option<Snapshot>);

impl CurrentStates {
    fn new(objects: &Objects, served_resource: &ServedResource) -> Self {
        Self(objects.store.cached_snapshot(&served_resource.storage))
    }

    /// Returns false if a state is known to have been replaced, so that its conversion need not be cached.
    fn has(&self, record: &Record) -> bool {
        let Some(snapshot) = &self.0 else { return true };
        snapshot.get(&record.key).is_some_and(|current| current.revision == record.revision)
    }
}

fn webhook_of(facts: &DefinitionFacts) -> Option<&ConversionWebhook> {
    let conversion = facts.conversion();
    conversion.webhook.as_ref().filter(|_| conversion.strategy == "Webhook")
}

/// Start of the JSON of objects that are stored in this version.
fn json_prefix(api_version: &str) -> Vec<u8> {
    format!("{{\"apiVersion\":\"{api_version}\",").into_bytes()
}

/// Single result of a conversion.
fn single<T>(mut converted: Vec<T>) -> Result<T> {
    converted.pop().ok_or_else(|| Box::new(Status::internal("a conversion returned no object")))
}
