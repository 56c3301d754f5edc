//! Encoding of values in etcd: as kube-apiserver would store them, encrypted where configured.

use std::sync::Arc;

use super::failure::EtcdFailure;
use super::layout::Layout;
use super::wire::KeyValue;
use crate::decode::index;
use crate::index::Indexer;
use crate::key::{Key, Resource};
use crate::record::{Record, Value};
use crate::seal::{OpenedValue, Seal, SealError, StoredValue};
use crate::txn::TxnError;
use crate::unreadable::Unreadable;

/// Common prefix of encrypted values, with any provider.
const SEALED_PREFIX: &[u8] = b"k8s:enc:";

/// Codec of values.
#[derive(Clone)]
pub(super) struct ValueCodec {
    pub(super) layout: Arc<dyn Layout>,
    pub(super) indexer: Arc<dyn Indexer>,
    pub(super) seal: Arc<Seal>,
}

impl ValueCodec {
    /// Encodes a value for an etcd key.
    pub(super) fn encode(&self, key: &Key, etcd_key: &str, value: &Value) -> Result<Vec<u8>, TxnError> {
        self.encode_json(key, etcd_key, value.json())
    }

    /// Encodes the JSON of a value for an etcd key.
    pub(super) fn encode_json(&self, key: &Key, etcd_key: &str, json: &[u8]) -> Result<Vec<u8>, TxnError> {
        let stored = self.layout.to_stored(key.resource(), json);
        let stored =
            stored.map_err(|reason| TxnError::Unavailable(format!("{key} cannot be stored: {reason}")))?;
        let sealed = self.seal.seal_at(key.resource(), etcd_key.as_bytes(), &stored);
        Ok(sealed.map_err(|error| TxnError::Sealed(error.to_string()))?.unwrap_or(stored))
    }

    /// Decodes a value of etcd to a record.
    pub(super) async fn decode(
        &self,
        key: Key,
        found: &KeyValue,
    ) -> Result<Result<Record, Unreadable>, EtcdFailure> {
        let revision = found.mod_revision;
        let opened = self.seal.open_at(key.resource(), &found.key, stored_value(&found.value)).await;
        let opened = match opened {
            Ok(OpenedValue { json, .. }) => json,
            Err(SealError::Refused { text, .. }) => return Ok(Err(Unreadable::sealed(key, revision, &text))),
            Err(SealError::Unavailable { text, .. }) => {
                return Err(EtcdFailure::Sealed { key, reason: text });
            }
        };
        let json = match self.layout.to_json(key.resource(), &opened) {
            Ok(json) => json,
            Err(reason) => return Ok(Err(Unreadable::new(key, revision, &reason))),
        };
        Ok(match index(&*self.indexer, key.resource(), &json) {
            Ok(indexed) => {
                let value = Value::new(json, indexed).with_stored_size(found.value.len() + 1);
                Ok(Record { key, revision, value })
            }
            Err(reason) => Err(Unreadable::new(key, revision, &reason)),
        })
    }

    /// Decodes a value. If it cannot be opened now, it is unreadable until it can be.
    pub(super) async fn decode_openable(
        &self,
        key: Key,
        found: &KeyValue,
    ) -> Result<Result<Record, Unreadable>, EtcdFailure> {
        match self.decode(key, found).await {
            Err(EtcdFailure::Sealed { key, reason }) => {
                Ok(Err(Unreadable::sealed(key, found.mod_revision, &reason)))
            }
            decoded => decoded,
        }
    }

    /// Returns true if a write now would encrypt the value differently.
    pub(super) async fn has_stale_seal(
        &self,
        resource: &Resource,
        found: &KeyValue,
    ) -> Result<bool, SealError> {
        let opened = self.seal.open_at(resource, &found.key, stored_value(&found.value)).await;
        opened.map(|opened| opened.stale)
    }
}

fn stored_value(value: &[u8]) -> StoredValue<'_> {
    if value.starts_with(SEALED_PREFIX) { StoredValue::Sealed(value) } else { StoredValue::Plain(value) }
}
