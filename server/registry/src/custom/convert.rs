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

use super::Custom;
use super::facts::{Facts, Version, Webhook};
use super::serving::Shared;
use crate::Result;
use crate::definition::is_ca_bundle;
use crate::encoding;
use crate::failure;
use crate::objects::Objects;
use crate::selection::Selection;
use crate::served::ServedResource;
use crate::stored::{self, Stored};

impl Custom {
    /// Creates a version; objects written up to revision `since` may have been validated by an older schema.
    pub(super) fn new(
        facts: &Arc<Facts>,
        version: &Version,
        since: i64,
        shared: &Shared,
        over: Signal,
    ) -> Option<Self> {
        let group = facts.group();
        let stored_as = facts.storage().map_or_else(String::new, |v| format!("{group}/{}", v.name));
        let (schemas, health) = (Arc::clone(&shared.schemas), Arc::clone(&shared.health));
        let own = schemas.get(&version.name)?.clone();
        let head = head(&format!("{group}/{}", version.name));
        let scale = version.subresources.scale.clone();
        let (facts, endpoint) = (Arc::clone(facts), OnceLock::new());
        let webhook = webhook_of(&facts);
        let has_sound_ca_bundle =
            webhook.is_none_or(|webhook| is_ca_bundle(&webhook.client_config.ca_bundle));
        Some(Self {
            facts,
            stored_as,
            head,
            own,
            schemas,
            endpoint,
            has_sound_ca_bundle,
            health,
            since,
            scale,
            over,
        })
    }

    /// Status 410 for a watch that starts before the definition served its current versions, when objects looked different. The
    /// client has to list again, as in upstream.
    pub(crate) fn too_early(&self, from: i64) -> Option<Status> {
        let since = self.since;
        (from < since).then(|| Status::expired(format!("too old resource version: {from} ({since})")))
    }

    /// True if a stored object can be used without conversion.
    fn shows(&self, record: &Record) -> bool {
        let json = record.value.json();
        json.starts_with(&self.head) && (record.revision > self.since || self.own.is_settled(json))
    }

    /// Conversion webhook; `None` if conversion only changes `apiVersion`.
    pub(crate) fn webhook(&self) -> Option<&Webhook> {
        webhook_of(&self.facts)
    }

    /// Decodes a stored object and updates it to the current schema of its stored version.
    fn settled(&self, record: &Record) -> Result<Object> {
        let mut object = stored::content(record);
        let api_version = object.api_version();
        let version = api_version.strip_prefix(self.facts.group()).and_then(|rest| rest.strip_prefix('/'));
        let Some(schema) = version.and_then(|version| self.schemas.get(version)) else {
            let words = "request to convert CR from an invalid group/version";
            return Err(Box::new(Status::failure(Reason::Unknown, format!("{words}: {api_version}"))));
        };
        schema.settle(&mut object);
        Ok(object)
    }
}

impl ServedResource {
    /// True if the result of a selection may depend on the version of the objects, so that it must be evaluated after conversion.
    pub(crate) fn selects_converted(&self, selection: &Selection) -> bool {
        let Some(custom) = &self.custom else { return false };
        // Only webhooks change labels.
        selection.looks_inside() || custom.webhook().is_some() && selection.looks_at_labels()
    }

    /// Sets defaults in parts that a write has created without them, such as a dropped status or the parent of a scale field.
    /// Objects that are converted before they are stored get the defaults of the stored version then.
    pub(crate) fn default_dropped(&self, object: &mut Object) {
        if self.custom.as_ref().is_some_and(|custom| custom.stored_as == self.api_version) {
            self.info.schema.default(object);
            self.info.schema.normalise(object);
        }
    }

    /// Record of a converted object, with the key and revision of the stored one.
    fn shown(&self, record: &Record, mut object: Object) -> Result<Arc<Record>> {
        object.set(&["apiVersion"], &self.api_version);
        self.info.schema.coerce(&mut object);
        self.info.schema.normalise(&mut object);
        let value = encoding::encode(self, &mut object)?;
        Ok(Arc::new(Record { key: record.key.clone(), revision: record.revision, value }))
    }
}

impl Objects {
    /// Converts a stored object to the version of a request.
    pub(crate) async fn incoming(&self, served: &ServedResource, record: Arc<Record>) -> Result<Arc<Record>> {
        match &served.custom {
            Some(custom) if !custom.shows(&record) => {
                only(self.convert_all(served, custom, vec![record]).await?)
            }
            _ => Ok(record),
        }
    }

    /// Converts stored objects to the version of a request, in order. Calls a webhook only for states that are not in the cache
    /// of representations; upstream's watch cache also stores converted objects.
    pub(crate) async fn incoming_all(
        &self,
        served: &ServedResource,
        mut records: Vec<Arc<Record>>,
    ) -> Result<Vec<Arc<Record>>> {
        let Some(custom) = &served.custom else { return Ok(records) };
        let is_kept = custom.webhook().is_some();
        let mut late = Vec::new();
        for (at, record) in records.iter_mut().enumerate().filter(|(_, record)| !custom.shows(record)) {
            match is_kept.then(|| self.forms.converted(served.id, record)).flatten() {
                Some(converted) => *record = converted,
                None => late.push(at),
            }
        }
        if late.is_empty() {
            return Ok(records);
        }
        let stored = late.iter().map(|at| Arc::clone(&records[*at])).collect();
        let converted = self.convert_all(served, custom, stored).await?;
        // After the webhook call, during which states may have been replaced.
        let present = is_kept.then(|| Present::of(self, served));
        for (at, converted) in late.into_iter().zip(converted) {
            if present.as_ref().is_some_and(|present| present.has(&converted)) {
                self.forms.keep_converted(served.id, &converted);
            }
            records[at] = converted;
        }
        Ok(records)
    }

    /// Converts stored objects to the version of a request, all of which need conversion.
    async fn convert_all(
        &self,
        served: &ServedResource,
        custom: &Custom,
        records: Vec<Arc<Record>>,
    ) -> Result<Vec<Arc<Record>>> {
        let objects = records.iter().map(|record| custom.settled(record)).collect::<Result<_>>()?;
        let converted = self.convert(custom, &served.api_version, objects).await?;
        records.iter().zip(converted).map(|(record, object)| served.shown(record, object)).collect()
    }

    /// Converts the objects of an event to the version of a watch; the previous object only if the selection requires it. Watches
    /// share converted objects.
    pub(crate) async fn incoming_event(
        &self,
        served: &ServedResource,
        event: Arc<Event>,
        selection: &Selection,
    ) -> Result<Arc<Event>> {
        let Some(custom) = &served.custom else { return Ok(event) };
        let selects = !selection.is_everything();
        let before = event.previous.as_ref().filter(|before| selects && !before.value.is_unreadable());
        if custom.shows(&event.record) && before.is_none_or(|record| custom.shows(record)) {
            return Ok(event);
        }
        let mut converted = Event::clone(&event);
        converted.record = self.incoming_shared(served, custom, &event.record).await?;
        // Lists can use the object until the next event. A watch that replays history has states that lists no longer return.
        let may_be_kept = custom.webhook().is_some() && event.event_type != EventType::Deleted;
        if may_be_kept && Present::of(self, served).has(&event.record) {
            self.forms.keep_converted(served.id, &converted.record);
        }
        if let Some(before) = before {
            converted.previous = Some(self.incoming_shared(served, custom, before).await?);
        }
        Ok(Arc::new(converted))
    }

    async fn incoming_shared(
        &self,
        served: &ServedResource,
        custom: &Custom,
        record: &Arc<Record>,
    ) -> Result<Arc<Record>> {
        if custom.shows(record) {
            return Ok(Arc::clone(record));
        }
        if let Some(converted) = self.forms.converted(served.id, record) {
            return Ok(converted);
        }
        let make = || self.incoming(served, Arc::clone(record));
        self.converted.get_or_make((served.id, record.revision), make).await
    }

    /// Converts a record that was just committed to the version of the request; `object` is its decoded content.
    pub(crate) async fn committed(
        &self,
        served: &ServedResource,
        record: Arc<Record>,
        object: Object,
    ) -> Result<Stored> {
        match &served.custom {
            Some(custom) if custom.stored_as != served.api_version => {
                Ok(Stored::new(self.incoming(served, record).await?))
            }
            // Internal callers will not decode it, so it is not cached.
            Some(_) => Ok(self.recent.stored(record)),
            None => Ok(self.recent.written(record, object)),
        }
    }

    /// Converts a record that is not stored (dry run) or already removed to the version of the request.
    pub(crate) async fn submitted(&self, served: &ServedResource, record: Record) -> Result<Stored> {
        Ok(Stored::new(self.incoming(served, Arc::new(record)).await?))
    }

    /// Encodes an object of the request's version for the store. The defaults of the storage version are stored with it, so that
    /// reads in that version need no decoding.
    pub(crate) async fn outgoing(&self, served: &ServedResource, object: &mut Object) -> Result<Value> {
        served.info.schema.whole_numbers(object);
        let custom = served.custom.as_ref().filter(|custom| custom.stored_as != served.api_version);
        let Some(custom) = custom else { return encoding::encode(served, object) };
        let mut sent = object.clone();
        sent.remove(&["metadata", "resourceVersion"]);
        let mut stored = self.convert_one(custom, &custom.stored_as, sent).await?;
        stored.set(&["apiVersion"], &custom.stored_as);
        let schema = custom.facts.storage().and_then(|version| custom.schemas.get(&version.name));
        let schema = schema.ok_or_else(|| Box::new(Status::internal("the storage version has no schema")))?;
        schema.settle(&mut stored);
        schema.normalise(&mut stored);
        encoding::encode(served, &mut stored)
    }

    /// True if an unchanged object must be written nevertheless: its stored version or schema is outdated in a visible way, or it
    /// is not encrypted as configured (`staleness` in upstream's `GuaranteedUpdate`).
    pub(crate) async fn is_stored_otherwise(
        &self,
        served: &ServedResource,
        current: &Record,
        object: &Object,
    ) -> Result<bool> {
        let key = &current.key;
        let sealed_otherwise = self.store.is_sealed_otherwise(key, current.revision).await;
        if sealed_otherwise.map_err(|error| failure::of_read(error, 0))? {
            return Ok(true);
        }
        let Some(custom) = &served.custom else { return Ok(false) };
        let found = self.find(served, key.namespace(), key.name()).await?;
        let Some(Ok(record)) = found.object else { return Ok(false) };
        if record.revision > custom.since && record.value.json().starts_with(&head(&custom.stored_as)) {
            return Ok(false);
        }
        let value = self.outgoing(served, &mut object.clone()).await?;
        Ok(value.json() != record.value.json())
    }

    /// Converts an object to another version; without a webhook the object is unchanged.
    pub(crate) async fn convert_one(&self, custom: &Custom, wanted: &str, object: Object) -> Result<Object> {
        only(self.convert(custom, wanted, vec![object]).await?)
    }

    /// Converts objects to another version, in order; without a webhook they are unchanged.
    async fn convert(&self, custom: &Custom, wanted: &str, objects: Vec<Object>) -> Result<Vec<Object>> {
        match custom.webhook() {
            Some(webhook) => {
                // Boxed: webhooks are rare, and the future would otherwise enlarge those of all reads and writes.
                let asked: BoxFuture<'_, _> = Box::pin(self.ask_to_convert(custom, webhook, wanted, objects));
                asked.await
            }
            None => Ok(objects),
        }
    }
}

/// Current states of a resource, if they are in memory.
struct Present(Option<Snapshot>);

impl Present {
    fn of(objects: &Objects, served: &ServedResource) -> Self {
        Self(objects.store.cached(&served.storage))
    }

    /// Returns false if a state is known to have been replaced, so that its conversion need not be cached.
    fn has(&self, record: &Record) -> bool {
        let Some(snapshot) = &self.0 else { return true };
        snapshot.get(&record.key).is_some_and(|present| present.revision == record.revision)
    }
}

fn webhook_of(facts: &Facts) -> Option<&Webhook> {
    let conversion = facts.conversion();
    conversion.webhook.as_ref().filter(|_| conversion.strategy == "Webhook")
}

/// Start of the JSON of objects that are stored in this version.
fn head(api_version: &str) -> Vec<u8> {
    format!("{{\"apiVersion\":\"{api_version}\",").into_bytes()
}

/// Single result of a conversion.
fn only<T>(mut converted: Vec<T>) -> Result<T> {
    converted.pop().ok_or_else(|| Box::new(Status::internal("a conversion returned no object")))
}
