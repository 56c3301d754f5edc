//! Values as they stand in etcd: what kube-apiserver would store, encrypted where it is to be.

use std::sync::Arc;

use super::failure::Failure;
use super::layout::Layout;
use super::wire::KeyValue;
use crate::decode::index;
use crate::index::Indexer;
use crate::key::{Key, Resource};
use crate::record::{Record, Value};
use crate::seal::{Opened, Seal, SealError, Stored};
use crate::txn::TxnError;
use crate::unreadable::Unreadable;

/// What encrypted values begin with, whatever they are encrypted with.
const SEALED: &[u8] = b"k8s:enc:";

/// Writes and reads values.
#[derive(Clone)]
pub(super) struct Values {
    pub(super) layout: Arc<dyn Layout>,
    pub(super) indexer: Arc<dyn Indexer>,
    pub(super) seal: Arc<Seal>,
}

impl Values {
    /// The bytes for etcd of a value that is to stand at a place.
    pub(super) fn encode(&self, key: &Key, place: &str, value: &Value) -> Result<Vec<u8>, TxnError> {
        self.to_stored(key, place, value.json())
    }

    /// The same of its JSON.
    pub(super) fn to_stored(&self, key: &Key, place: &str, json: &[u8]) -> Result<Vec<u8>, TxnError> {
        let stored = self.layout.to_stored(key.resource(), json);
        let stored = stored.map_err(|why| TxnError::Unavailable(format!("{key} cannot be stored: {why}")))?;
        let sealed = self.seal.seal_at(key.resource(), place.as_bytes(), &stored);
        Ok(sealed.map_err(|error| TxnError::Sealed(error.to_string()))?.unwrap_or(stored))
    }

    /// The record in a value of etcd.
    pub(super) async fn decode(
        &self,
        key: Key,
        found: &KeyValue,
    ) -> Result<Result<Record, Unreadable>, Failure> {
        let revision = found.mod_revision;
        let opened = self.seal.open_at(key.resource(), &found.key, stored(&found.value)).await;
        let opened = match opened {
            Ok(Opened { json, .. }) => json,
            Err(SealError::Refused { text, .. }) => return Ok(Err(Unreadable::sealed(key, revision, &text))),
            Err(SealError::Unavailable { text, .. }) => return Err(Failure::Sealed { key, reason: text }),
        };
        let json = match self.layout.to_json(key.resource(), &opened) {
            Ok(json) => json,
            Err(why) => return Ok(Err(Unreadable::new(key, revision, &why))),
        };
        Ok(match index(&*self.indexer, key.resource(), &json) {
            Ok(indexed) => {
                let value = Value::new(json, indexed).stored_as(found.value.len() + 1);
                Ok(Record { key, revision, value })
            }
            Err(reason) => Err(Unreadable::new(key, revision, &reason)),
        })
    }

    /// Decodes a value; one that cannot be opened now is unreadable until it can be.
    pub(super) async fn decode_openable(
        &self,
        key: Key,
        found: &KeyValue,
    ) -> Result<Result<Record, Unreadable>, Failure> {
        match self.decode(key, found).await {
            Err(Failure::Sealed { key, reason }) => {
                Ok(Err(Unreadable::sealed(key, found.mod_revision, &reason)))
            }
            decoded => decoded,
        }
    }

    /// Whether a value is not encrypted as it would be now.
    pub(super) async fn is_stale(&self, resource: &Resource, found: &KeyValue) -> Result<bool, SealError> {
        let opened = self.seal.open_at(resource, &found.key, stored(&found.value)).await;
        opened.map(|opened| opened.stale)
    }
}

fn stored(value: &[u8]) -> Stored<'_> {
    if value.starts_with(SEALED) { Stored::Sealed(value) } else { Stored::Plain(value) }
}
