//! Read-only mode of a store: after it was moved away, or while it is being restored.
//!
//! A record in the log enables the mode, so that every writing process sees it in the order of all writes: writes with lower
//! revisions were acknowledged, writes with higher revisions are not. The record persists over restarts and is not copied.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::key::{Key, Resource};
use crate::record::Record;
use crate::txn::{Change, Txn};

static KEY: LazyLock<Key> =
    LazyLock::new(|| Key::new(&Resource::new("portico.dev", "readonlystores"), "", "store"));

/// Returns the key of the record.
pub(crate) fn key() -> &'static Key {
    &KEY
}

/// Returns the resource of the record, which is not served to clients.
pub(crate) fn resource() -> &'static Resource {
    KEY.resource()
}

/// True if this is the key of the record.
pub(crate) fn is_read_only_key(key: &Key) -> bool {
    key == &*KEY
}

/// Returns true if a read-only store rejects this Txn: it writes another object than the record.
pub(crate) fn rejects(txn: &Txn) -> bool {
    txn.operations
        .iter()
        .any(|operation| !matches!(operation.change, Change::Check) && !is_read_only_key(&operation.key))
}

/// Record that makes a store read-only.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadOnlyStore {
    kind: String,
    api_version: String,
    metadata: Metadata,
    reason: String,
    /// ID of a restore in progress: the stored data is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    restore: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    name: String,
}

/// Returns the JSON of the record.
pub(crate) fn record_json(reason: &str) -> Vec<u8> {
    json(reason, None)
}

/// Returns the JSON of the record for the duration of the restore with this ID.
pub(crate) fn restore_record_json(id: &str) -> Vec<u8> {
    json("a restore is in progress", Some(id))
}

fn json(reason: &str, restore: Option<&str>) -> Vec<u8> {
    let record = ReadOnlyStore {
        kind: "ReadOnlyStore".to_owned(),
        api_version: "portico.dev/v1".to_owned(),
        metadata: Metadata { name: KEY.name().to_owned() },
        reason: reason.to_owned(),
        restore: restore.map(str::to_owned),
    };
    // A struct of strings always encodes.
    serde_json::to_vec(&record).unwrap_or_default()
}

/// Returns the reason why the store is read-only.
pub(crate) fn reason_of(record: &Record) -> String {
    reason_in(record.value.json())
}

/// Returns the reason from the JSON of the record.
pub(crate) fn reason_in(json: &[u8]) -> String {
    let record: Result<ReadOnlyStore, _> = serde_json::from_slice(json);
    record.map_or_else(|_| "the recorded reason is unreadable".to_owned(), |record| record.reason)
}

/// Returns true if a restore that has not finished made the store read-only.
pub(crate) fn is_restore_record(json: &[u8]) -> bool {
    let record: Result<ReadOnlyStore, _> = serde_json::from_slice(json);
    record.is_ok_and(|record| record.restore.is_some())
}
