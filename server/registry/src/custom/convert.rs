//! Versions: what is stored comes into the version of a request, and goes back into the one that is stored.
//!
//! A version works on objects of its own; the way through here is taken at the store's edge. What was written in the
//! version asked for, along the schema in force, passes as it is: its bytes are not looked into.

use std::sync::Arc;

use portico_kit::lifecycle::Signal;
use portico_machinery::{Object, Status};
use portico_schema::Schema;
use portico_store::{Event, Key, Record, Value};

use super::Custom;
use super::facts::{Facts, Version};
use crate::Result;
use crate::draft;
use crate::registry::Inner;
use crate::served::Served;
use crate::stored::{self, Stored};

impl Custom {
    /// Of a version, from what was written after revision `since`; objects are stored along `storage`.
    pub(super) fn new(
        facts: &Arc<Facts>,
        version: &Version,
        since: i64,
        storage: Schema,
        over: Signal,
    ) -> Self {
        let group = facts.group();
        let stored_as = facts.storage().map_or_else(String::new, |v| format!("{group}/{}", v.name));
        let head = format!("{{\"apiVersion\":\"{group}/{}\",", version.name).into_bytes();
        let scale = version.subresources.scale.clone();
        Self { facts: Arc::clone(facts), stored_as, head, storage, since, scale, over }
    }

    /// Whether a stored object is shown as it is.
    fn shows(&self, record: &Record) -> bool {
        record.revision > self.since && record.value.json().starts_with(&self.head)
    }
}

impl Inner {
    /// A stored object in the version of a request.
    pub(crate) async fn incoming(&self, served: &Served, record: Arc<Record>) -> Result<Arc<Record>> {
        match &served.custom {
            Some(custom) if !custom.shows(&record) => {
                let shown = self.incoming_all(served, vec![record]).await?.pop();
                shown.ok_or_else(|| Box::new(Status::internal("a conversion lost its object")))
            }
            _ => Ok(record),
        }
    }

    /// Stored objects in the version of a request, in their order.
    pub(crate) async fn incoming_all(
        &self,
        served: &Served,
        mut records: Vec<Arc<Record>>,
    ) -> Result<Vec<Arc<Record>>> {
        let Some(custom) = &served.custom else { return Ok(records) };
        let late: Vec<usize> = (0..records.len()).filter(|at| !custom.shows(&records[*at])).collect();
        if late.is_empty() {
            return Ok(records);
        }
        let objects = late.iter().map(|at| stored::decode(&records[*at])).collect();
        let converted = self.convert(custom, &served.api_version, objects).await?;
        for (at, mut object) in late.into_iter().zip(converted) {
            custom.storage.settle(&mut object);
            object.set(&["apiVersion"], &served.api_version);
            served.info.schema.normalise(&mut object);
            let record = &records[at];
            let value = draft::encode(served, &mut object)?;
            records[at] = Arc::new(Record { key: record.key.clone(), revision: record.revision, value });
        }
        Ok(records)
    }

    /// An event with its objects in the version of a watch.
    pub(crate) async fn incoming_event(&self, served: &Served, event: Arc<Event>) -> Result<Arc<Event>> {
        let Some(custom) = &served.custom else { return Ok(event) };
        if custom.shows(&event.record) && event.previous.iter().all(|record| custom.shows(record)) {
            return Ok(event);
        }
        let mut converted = Event::clone(&event);
        converted.record = self.incoming(served, converted.record).await?;
        if let Some(previous) = converted.previous.take() {
            converted.previous = Some(self.incoming(served, previous).await?);
        }
        Ok(Arc::new(converted))
    }

    /// What was just written, in the version of the request; it was encoded from this object.
    pub(crate) async fn committed(
        &self,
        served: &Served,
        record: Arc<Record>,
        object: Object,
    ) -> Result<Stored> {
        match &served.custom {
            Some(custom) if custom.stored_as != served.api_version => {
                Ok(Stored::new(self.incoming(served, record).await?))
            }
            _ => Ok(self.recent.written(record, object)),
        }
    }

    /// What would have been written, or is gone with that, in the version of the request.
    pub(crate) async fn submitted(&self, served: &Served, record: Record) -> Result<Stored> {
        Ok(Stored::new(self.incoming(served, Arc::new(record)).await?))
    }

    /// An object of a request's version as it is stored.
    pub(crate) async fn outgoing(&self, served: &Served, object: &mut Object) -> Result<Value> {
        let custom = served.custom.as_ref().filter(|custom| custom.stored_as != served.api_version);
        let Some(custom) = custom else { return draft::encode(served, object) };
        let mut converted = self.convert(custom, &custom.stored_as, vec![object.clone()]).await?;
        let lost = || Box::new(Status::internal("a conversion lost its object"));
        let mut stored = converted.pop().ok_or_else(lost)?;
        stored.set(&["apiVersion"], &custom.stored_as);
        custom.storage.settle(&mut stored);
        custom.storage.normalise(&mut stored);
        draft::encode(served, &mut stored)
    }

    /// Whether an object that an update leaves as it is has to be written all the same: it is stored in a version, or
    /// along a schema, that is no longer the one that objects are stored in, and that shows.
    pub(crate) async fn is_stored_otherwise(
        &self,
        served: &Served,
        key: &Key,
        object: &Object,
    ) -> Result<bool> {
        let Some(custom) = &served.custom else { return Ok(false) };
        let snapshot = self.snapshot(served).await?;
        let Some(record) = snapshot.get(key) else { return Ok(false) };
        let head = format!("{{\"apiVersion\":\"{}\",", custom.stored_as);
        if record.revision > custom.since && record.value.json().starts_with(head.as_bytes()) {
            return Ok(false);
        }
        let value = self.outgoing(served, &mut object.clone()).await?;
        Ok(value.json() != record.value.json())
    }

    /// Objects in another version, in their order.
    async fn convert(&self, custom: &Custom, wanted: &str, objects: Vec<Object>) -> Result<Vec<Object>> {
        match &custom.facts.conversion().webhook {
            Some(webhook) if custom.facts.conversion().strategy == "Webhook" => {
                self.ask_to_convert(custom, webhook, wanted, objects).await
            }
            _ => Ok(objects),
        }
    }
}
