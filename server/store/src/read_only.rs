//! A store whose writes are stopped: because it was moved away, or because it is being restored.
//!
//! A record in the log says so, so that every process that writes meets it in the one order of all writes: what has a lower
//! revision was acknowledged, nothing with a higher one is. It stays over restarts, and no copy takes it along.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::key::{Key, Resource};
use crate::record::Record;
use crate::txn::{Change, Txn};

static KEY: LazyLock<Key> =
    LazyLock::new(|| Key::new(&Resource::new("portico.dev", "readonlystores"), "", "store"));

/// The key of the record.
pub(crate) fn key() -> &'static Key {
    &KEY
}

/// The resource of the record, which nobody is served.
pub(crate) fn resource() -> &'static Resource {
    KEY.resource()
}

/// Whether it is the key of the record.
pub(crate) fn is_switch(key: &Key) -> bool {
    key == &*KEY
}

/// Whether a stopped store refuses this: it writes something, and not the record alone.
pub(crate) fn stops(txn: &Txn) -> bool {
    txn.operations
        .iter()
        .any(|operation| !matches!(operation.change, Change::Check) && !is_switch(&operation.key))
}

/// The record.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadOnlyStore {
    kind: String,
    api_version: String,
    metadata: Metadata,
    reason: String,
    /// Of a restore that has begun: what is stored is not whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    restore: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    name: String,
}

/// The JSON of the record.
pub(crate) fn json_of(reason: &str) -> Vec<u8> {
    json(reason, None)
}

/// The JSON of the record while a restore of this id writes what will be the store.
pub(crate) fn json_of_restore(id: &str) -> Vec<u8> {
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

/// Why writes are stopped.
pub(crate) fn reason_of(record: &Record) -> String {
    reason_in(record.value.json())
}

/// The same of the record's JSON.
pub(crate) fn reason_in(json: &[u8]) -> String {
    let record: Result<ReadOnlyStore, _> = serde_json::from_slice(json);
    record.map_or_else(|_| "the recorded reason is unreadable".to_owned(), |record| record.reason)
}

/// Whether writes are stopped by a restore that has not come to its end.
pub(crate) fn is_of_restore(json: &[u8]) -> bool {
    let record: Result<ReadOnlyStore, _> = serde_json::from_slice(json);
    record.is_ok_and(|record| record.restore.is_some())
}
