//! Decodes changes of etcd to events.

use std::sync::Arc;

use serde::Serialize;

use super::failure::Failure;
use super::read::Reader;
use super::wire::{KeyValue, WatchEvent, WatchEventType};
use crate::event::{Event, EventType};
use crate::index::{Indexer, MetadataIndexer};
use crate::key::Key;
use crate::record::{Record, Value};
use crate::unreadable::Unreadable;

/// Treatment of a value that cannot be opened because its key service is unavailable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unopened {
    /// The read fails.
    Fails,
    /// The object is unreadable until the value can be opened.
    IsUnreadable,
}

/// Decodes an event, whose object may be unreadable. Returns `None` for keys that are not objects.
pub(super) async fn read(
    reader: &Reader,
    found: &WatchEvent,
    unopened: Unopened,
) -> Result<Option<Event>, Failure> {
    let Some(kv) = &found.kv else { return Ok(None) };
    let Some(key) = reader.keys.parse(&kv.key) else { return Ok(None) };
    let previous = match &found.prev_kv {
        Some(previous) => Some(state_before(reader, &key, previous, unopened).await?),
        None => None,
    };
    let is_deleted = found.event_type == i32::from(WatchEventType::Delete);
    let (record, unreadable) = match is_deleted {
        true => (last_state(&key, kv.mod_revision, previous.as_deref()), None),
        false => match decode(reader, key, kv, unopened).await? {
            Ok(record) => (record, None),
            Err(object) => ((*object.record).clone(), Some(Arc::new(object))),
        },
    };
    let event_type = EventType::of(is_deleted, previous.is_some());
    let is_held = reader.cache.will_hold(record.key.resource(), event_type);
    Ok(Some(Event { event_type, record: Arc::new(record), previous, unreadable, is_held }))
}

/// Takes the events of complete revisions from the received ones. If `is_fragment` is true, the last revision is not complete.
pub(super) fn whole(parts: &mut Vec<WatchEvent>, is_fragment: bool) -> Vec<WatchEvent> {
    let last = parts.last().map_or(0, WatchEvent::revision);
    match is_fragment {
        true => parts.drain(..parts.partition_point(|event| event.revision() < last)).collect(),
        false => std::mem::take(parts),
    }
}

async fn decode(
    reader: &Reader,
    key: Key,
    kv: &KeyValue,
    unopened: Unopened,
) -> Result<Result<Record, Unreadable>, Failure> {
    match unopened {
        Unopened::Fails => reader.values.decode(key, kv).await,
        Unopened::IsUnreadable => reader.values.decode_openable(key, kv).await,
    }
}

/// Returns the previous state, from the cache if it contains it.
async fn state_before(
    reader: &Reader,
    key: &Key,
    kv: &KeyValue,
    unopened: Unopened,
) -> Result<Arc<Record>, Failure> {
    match reader.cache.get(key).filter(|record| record.revision == kv.mod_revision) {
        Some(record) => Ok(record),
        None => {
            let decoded = decode(reader, key.clone(), kv, unopened).await?;
            Ok(decoded.map_or_else(|object| object.record, Arc::new))
        }
    }
}

/// Returns the state to publish for a deleted object: its last one, or only its name if the state is not known.
fn last_state(key: &Key, revision: i64, previous: Option<&Record>) -> Record {
    let known = previous.map(|previous| &previous.value).filter(|value| !value.is_unreadable());
    let value = known.cloned().unwrap_or_else(|| name_alone(key));
    Record { key: key.clone(), revision, value }
}

/// Returns the state of an object of which only the name is known.
pub(super) fn name_alone(key: &Key) -> Value {
    let metadata = Metadata { name: key.name(), namespace: key.namespace() };
    // Strings can always be encoded as JSON, and such metadata can always be indexed.
    let json = serde_json::to_vec(&Named { metadata }).unwrap_or_default();
    let indexed = MetadataIndexer.index(key.resource(), &json).unwrap_or_default();
    Value::new(json, indexed)
}

/// Object of which only the name is known.
#[derive(Serialize)]
struct Named<'a> {
    metadata: Metadata<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_response_in_parts_whole_revisions_are_taken() {
        let event = |mod_revision| WatchEvent {
            kv: Some(KeyValue { mod_revision, ..KeyValue::default() }),
            ..WatchEvent::default()
        };
        let revisions = |events: &[WatchEvent]| events.iter().map(WatchEvent::revision).collect::<Vec<_>>();
        let mut parts = [5, 6, 7, 7].map(event).to_vec();
        assert_eq!(revisions(&whole(&mut parts, true)), [5, 6]);
        parts.extend([7, 8].map(event));
        assert_eq!(revisions(&whole(&mut parts, false)), [7, 7, 7, 8]);
        assert!(parts.is_empty() && whole(&mut parts, true).is_empty());
    }
}
