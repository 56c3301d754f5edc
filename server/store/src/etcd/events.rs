//! Decodes changes of etcd to events.

use std::sync::Arc;

use serde::Serialize;

use super::failure::EtcdFailure;
use super::reader::Reader;
use super::wire::{KeyValue, WatchEvent, WatchEventType};
use crate::event::{Event, EventType};
use crate::index::{Indexer, MetadataIndexer};
use crate::key::Key;
use crate::record::{Record, Value};
use crate::unreadable::Unreadable;

/// Treatment of a value that cannot be opened because its key service is unavailable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UnopenedPolicy {
    /// The read fails.
    Fail,
    /// The object is unreadable until the value can be opened.
    MarkUnreadable,
}

/// Decodes an event, whose object may be unreadable. Returns `None` for keys that are not objects.
pub(super) async fn decode_event(
    reader: &Reader,
    found: &WatchEvent,
    unopened: UnopenedPolicy,
) -> Result<Option<Event>, EtcdFailure> {
    let Some(kv) = &found.kv else { return Ok(None) };
    let Some(key) = reader.keys.parse(&kv.key) else { return Ok(None) };
    let previous = match &found.prev_kv {
        Some(previous) => Some(previous_state(reader, &key, previous, unopened).await?),
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
    let is_record_cached = reader.cache.will_cache(record.key.resource(), event_type);
    Ok(Some(Event { event_type, record: Arc::new(record), previous, unreadable, is_record_cached }))
}

/// Takes the events of complete revisions from the received ones. If `is_fragment` is true, the last revision is not complete.
pub(super) fn take_complete(parts: &mut Vec<WatchEvent>, is_fragment: bool) -> Vec<WatchEvent> {
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
    unopened: UnopenedPolicy,
) -> Result<Result<Record, Unreadable>, EtcdFailure> {
    match unopened {
        UnopenedPolicy::Fail => reader.values.decode(key, kv).await,
        UnopenedPolicy::MarkUnreadable => reader.values.decode_openable(key, kv).await,
    }
}

/// Returns the previous state, from the cache if it contains it.
async fn previous_state(
    reader: &Reader,
    key: &Key,
    kv: &KeyValue,
    unopened: UnopenedPolicy,
) -> Result<Arc<Record>, EtcdFailure> {
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
    let readable_value = previous.map(|previous| &previous.value).filter(|value| !value.is_unreadable());
    let value = readable_value.cloned().unwrap_or_else(|| name_only(key));
    Record { key: key.clone(), revision, value }
}

/// Returns the state of an object of which only the name is known.
pub(super) fn name_only(key: &Key) -> Value {
    let metadata = Metadata { name: key.name(), namespace: key.namespace() };
    // Strings can always be encoded as JSON, and such metadata can always be indexed.
    let json = serde_json::to_vec(&NameOnlyObject { metadata }).unwrap_or_default();
    let indexed = MetadataIndexer.index(key.resource(), &json).unwrap_or_default();
    Value::new(json, indexed)
}

/// Object of which only the name is known.
#[derive(Serialize)]
struct NameOnlyObject<'a> {
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
    fn complete_revisions_are_taken_from_a_fragmented_response() {
        let event = |mod_revision| WatchEvent {
            kv: Some(KeyValue { mod_revision, ..KeyValue::default() }),
            ..WatchEvent::default()
        };
        let revisions = |events: &[WatchEvent]| events.iter().map(WatchEvent::revision).collect::<Vec<_>>();
        let mut parts = [5, 6, 7, 7].map(event).to_vec();
        assert_eq!(revisions(&take_complete(&mut parts, true)), [5, 6]);
        parts.extend([7, 8].map(event));
        assert_eq!(revisions(&take_complete(&mut parts, false)), [7, 7, 7, 8]);
        assert!(parts.is_empty() && take_complete(&mut parts, true).is_empty());
    }
}
