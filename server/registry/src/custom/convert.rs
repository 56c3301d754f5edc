//! Versions: what is stored comes into the version of a request, and goes back into the one that is stored.
//!
//! A version works on objects of its own; the way through here is taken at the store's edge. What was written in the
//! version asked for, along the schema in force, passes as it is: its bytes are not looked into. Anything else goes
//! upstream's way: brought up to the schema of the version that it was stored in, defaults included; converted; pruned to
//! the schema of the version asked for, which sets no defaults.

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
    /// Of a version, from what was written after revision `since`.
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

    /// Why nobody may watch from a revision: before the definition, or before it served what it serves now, objects looked
    /// otherwise. Whoever resumes from there has to list again, as upstream demands.
    pub(crate) fn too_early(&self, from: i64) -> Option<Status> {
        let since = self.since;
        (from < since).then(|| Status::expired(format!("too old resource version: {from} ({since})")))
    }

    /// Whether a stored object is shown as it is.
    fn shows(&self, record: &Record) -> bool {
        let json = record.value.json();
        json.starts_with(&self.head) && (record.revision > self.since || self.own.is_settled(json))
    }

    /// Who converts, when it is not done by changing `apiVersion`.
    pub(crate) fn webhook(&self) -> Option<&Webhook> {
        webhook_of(&self.facts)
    }

    /// A stored object as the version that it was stored in has it now.
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
    /// Whether what a selection takes can depend on the version that objects are shown in: it has to be asked after the
    /// conversion then.
    pub(crate) fn selects_converted(&self, selection: &Selection) -> bool {
        let Some(custom) = &self.custom else { return false };
        // None but webhooks change labels.
        selection.looks_inside() || custom.webhook().is_some() && selection.looks_at_labels()
    }

    /// Sets the defaults of what a write has made without them: a status that may not be written, what a scale is in; what is converted before it is
    /// stored gets those of the stored version then.
    pub(crate) fn default_dropped(&self, object: &mut Object) {
        if self.custom.as_ref().is_some_and(|custom| custom.stored_as == self.api_version) {
            self.info.schema.default(object);
            self.info.schema.normalise(object);
        }
    }

    /// A converted object in the place of a record.
    fn shown(&self, record: &Record, mut object: Object) -> Result<Arc<Record>> {
        object.set(&["apiVersion"], &self.api_version);
        self.info.schema.coerce(&mut object);
        self.info.schema.normalise(&mut object);
        let value = encoding::encode(self, &mut object)?;
        Ok(Arc::new(Record { key: record.key.clone(), revision: record.revision, value }))
    }
}

impl Objects {
    /// A stored object in the version of a request.
    pub(crate) async fn incoming(&self, served: &ServedResource, record: Arc<Record>) -> Result<Arc<Record>> {
        match &served.custom {
            Some(custom) if !custom.shows(&record) => {
                only(self.convert_all(served, custom, vec![record]).await?)
            }
            _ => Ok(record),
        }
    }

    /// Stored objects in the version of a request, in their order. A webhook converts the states that the cache of forms does not
    /// have: upstream's watch cache keeps converted objects, too.
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
        // After the call of the webhook, during which states may have been replaced.
        let present = is_kept.then(|| Present::of(self, served));
        for (at, converted) in late.into_iter().zip(converted) {
            if present.as_ref().is_some_and(|present| present.has(&converted)) {
                self.forms.keep_converted(served.id, &converted);
            }
            records[at] = converted;
        }
        Ok(records)
    }

    /// Stored objects in the version of a request, which none of them is shown in as it is.
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

    /// An event with its objects in the version of a watch; the one before the event only where a selection asks for it.
    /// What one watch has converted, the others find.
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
        // Lists show it until the next event. A watch that replays history has states that lists do not show any more.
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

    /// What was just written, in the version of the request; it was encoded from this object.
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
            // None of our own code looks into it next: it goes now, not when the next states push it out.
            Some(_) => Ok(self.recent.stored(record)),
            None => Ok(self.recent.written(record, object)),
        }
    }

    /// What would have been written, or is gone with that, in the version of the request.
    pub(crate) async fn submitted(&self, served: &ServedResource, record: Record) -> Result<Stored> {
        Ok(Stored::new(self.incoming(served, Arc::new(record)).await?))
    }

    /// An object of a request's version as it is stored. The storage version's defaults are stored with it, so that
    /// reading it in that version needs no look inside.
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

    /// Whether an object that an update leaves as it is has to be written all the same: it is stored in a version, or
    /// along a schema, that is no longer the one that objects are stored in, and that shows; or it is encrypted otherwise than
    /// objects are now (`staleness` of upstream's `GuaranteedUpdate`).
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

    /// An object in another version; one that no webhook converts is as it was.
    pub(crate) async fn convert_one(&self, custom: &Custom, wanted: &str, object: Object) -> Result<Object> {
        only(self.convert(custom, wanted, vec![object]).await?)
    }

    /// Objects in another version, in their order. Where no webhook converts, they are as they were.
    async fn convert(&self, custom: &Custom, wanted: &str, objects: Vec<Object>) -> Result<Vec<Object>> {
        match custom.webhook() {
            Some(webhook) => {
                // On the heap: few take this way, and all that read and write have room for it otherwise.
                let asked: BoxFuture<'_, _> = Box::pin(self.ask_to_convert(custom, webhook, wanted, objects));
                asked.await
            }
            None => Ok(objects),
        }
    }
}

/// The present states of a resource, as far as they are in memory.
struct Present(Option<Snapshot>);

impl Present {
    fn of(objects: &Objects, served: &ServedResource) -> Self {
        Self(objects.store.cached(&served.storage))
    }

    /// Returns false if a state is known to have been replaced: nothing made of it is worth keeping.
    fn has(&self, record: &Record) -> bool {
        let Some(snapshot) = &self.0 else { return true };
        snapshot.get(&record.key).is_some_and(|present| present.revision == record.revision)
    }
}

fn webhook_of(facts: &Facts) -> Option<&Webhook> {
    let conversion = facts.conversion();
    conversion.webhook.as_ref().filter(|_| conversion.strategy == "Webhook")
}

/// How the JSON of an object begins that is stored in this version.
fn head(api_version: &str) -> Vec<u8> {
    format!("{{\"apiVersion\":\"{api_version}\",").into_bytes()
}

/// What became of one object.
fn only<T>(mut converted: Vec<T>) -> Result<T> {
    converted.pop().ok_or_else(|| Box::new(Status::internal("a conversion returned no object")))
}
