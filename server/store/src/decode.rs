//! Decodes stored values: opens and indexes them, or reports them as unreadable.

use portico_machinery::object::{MAX_READ_DEPTH, is_deeper};

use crate::checksum;
use crate::codec;
use crate::error::StoreError;
use crate::index::{Indexed, Indexer};
use crate::key::{Key, Resource};
use crate::record::{Record, Value};
use crate::seal::{OpenedValue, Seal, SealError};
use crate::store::StaleSeals;
use crate::unreadable::Unreadable;

/// Indexes the JSON of an object. The indexer skips most of the JSON, so other conditions of readable objects are checked here:
/// it must be UTF-8, and not too deep. Otherwise the object would appear to have no fields, and therefore no finalizers.
pub(crate) fn index(indexer: &dyn Indexer, resource: &Resource, json: &[u8]) -> Result<Indexed, String> {
    if std::str::from_utf8(json).is_err() {
        return Err("the value is not UTF-8".to_owned());
    }
    if is_deeper(json, MAX_READ_DEPTH) {
        return Err(format!("the value has more than {MAX_READ_DEPTH} levels"));
    }
    indexer.index(resource, json).map_err(|error| error.0)
}

/// Dependencies of decoding.
#[derive(Clone, Copy)]
pub(crate) struct Decoder<'a> {
    pub(crate) indexer: &'a dyn Indexer,
    pub(crate) seal: &'a Seal,
    /// True if a value that cannot be opened now counts as unreadable until it can be opened. Otherwise it is an error.
    pub(crate) skips_unopened: bool,
}

/// Reason why a value cannot be decoded.
#[derive(Debug)]
pub(crate) enum DecodeError {
    Database(sqlx::Error),
    /// The key of the seal is not available now. It may become available later.
    Sealed {
        key: Key,
        reason: String,
    },
}

impl From<sqlx::Error> for DecodeError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

/// A record, or the description of an unreadable object.
pub(crate) type Decoded = Result<Record, Unreadable>;

impl Decoder<'_> {
    /// Decodes a stored value and verifies its checksum, if there is one.
    pub(crate) async fn decode(
        &self,
        key: Key,
        revision: i64,
        stored: &[u8],
        checksum: Option<i64>,
    ) -> Result<Decoded, DecodeError> {
        let value = match codec::decode(stored) {
            Ok(value) => value,
            Err(reason) => return Ok(Err(Unreadable::new(key, revision, &reason))),
        };
        let json = match checksum::verify(&key, revision, &value, checksum) {
            Err(reason) => {
                let names_namespace = value.names_namespace(key.namespace());
                let object = Unreadable::new(key, revision, reason);
                return Ok(Err(if names_namespace { object } else { object.with_doubtful_namespace() }));
            }
            Ok(()) => match self.seal.open(&key, value).await {
                Ok(OpenedValue { json, .. }) => json,
                Err(SealError::Refused { text, .. }) => {
                    return Ok(Err(Unreadable::sealed(key, revision, &text)));
                }
                Err(SealError::Unavailable { text, .. }) if self.skips_unopened => {
                    return Ok(Err(Unreadable::sealed(key, revision, &text)));
                }
                Err(SealError::Unavailable { text, .. }) => {
                    return Err(DecodeError::Sealed { key, reason: text });
                }
            },
        };
        Ok(match index(self.indexer, key.resource(), &json) {
            Ok(indexed) => {
                let value = Value::new(&*json, indexed).with_stored_size(stored.len());
                Ok(Record { key, revision, value })
            }
            Err(reason) => Err(Unreadable::new(key, revision, &reason)),
        })
    }

    /// Returns true if a stored value has a stale seal. Damaged values count as stale: they are rewritten from
    /// the last state read.
    pub(crate) async fn has_stale_seal(&self, key: &Key, stored: &[u8]) -> Result<bool, StoreError> {
        let Ok(stored) = codec::decode(stored) else { return Ok(true) };
        match self.seal.open(key, stored).await {
            Ok(opened) => Ok(opened.stale),
            Err(error) => Err(StoreError::Sealed { key: key.clone(), reason: error.to_string() }),
        }
    }

    /// Counts an object by the state of its seal. An object without a key is unreadable.
    pub(crate) async fn count_seal(
        &self,
        counted: &mut StaleSeals,
        key: Option<Key>,
        revision: i64,
        stored: &[u8],
    ) -> Result<(), StoreError> {
        counted.objects += 1;
        let (Some(key), Ok(stored)) = (key, codec::decode(stored)) else {
            counted.unreadable += 1;
            return Ok(());
        };
        match self.seal.open(&key, stored).await {
            Ok(opened) if opened.stale => counted.stale.push((key, revision)),
            Ok(_) => {}
            Err(SealError::Refused { .. }) => counted.unreadable += 1,
            Err(SealError::Unavailable { text: reason, .. }) => {
                return Err(StoreError::Sealed { key, reason });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::MetadataIndexer;

    #[test]
    fn values_with_unreadable_fields_are_not_indexed() {
        let resource = Resource::new("g", "things");
        let indexed = |json: &[u8]| index(&MetadataIndexer, &resource, json).map(|_| ());
        let deep = |levels: usize| {
            let head = r#"{"metadata":{"uid":"u","finalizers":["a/b"]},"spec":"#;
            format!("{head}{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1)).into_bytes()
        };
        assert_eq!(indexed(&deep(MAX_READ_DEPTH)), Ok(()));
        let reason = indexed(&deep(MAX_READ_DEPTH + 1)).unwrap_err();
        assert_eq!(reason, format!("the value has more than {MAX_READ_DEPTH} levels"));
        assert!(indexed(b"{\"metadata\":{\"uid\":\"u\"},\"a\":\"\xff\"}").is_err());
    }
}
