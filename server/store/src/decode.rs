//! Stored values as records: opened, indexed, or named as unreadable.

use crate::checksum;
use crate::codec;
use crate::error::StoreError;
use crate::index::{Indexed, Indexer};
use crate::key::{Key, Resource};
use crate::record::{Record, Value};
use crate::seal::{Opened, Seal, SealError};
use crate::store::SealedOtherwise;
use crate::unreadable::Unreadable;

/// Reads what the index needs out of an object's JSON, which must be UTF-8: the indexer skips most of it.
pub(crate) fn index(indexer: &dyn Indexer, resource: &Resource, json: &[u8]) -> Result<Indexed, String> {
    if std::str::from_utf8(json).is_err() {
        return Err("the value is not UTF-8".to_owned());
    }
    indexer.index(resource, json).map_err(|error| error.0)
}

/// What reading values needs.
#[derive(Clone, Copy)]
pub(crate) struct Decoder<'a> {
    pub(crate) indexer: &'a dyn Indexer,
    pub(crate) seal: &'a Seal,
    /// True if a value that cannot be opened now is unreadable until it can be, instead of an error.
    pub(crate) skips_unopened: bool,
}

/// Why a value cannot be decoded.
#[derive(Debug)]
pub(crate) enum DecodeError {
    Database(sqlx::Error),
    /// What it is sealed with is not known now, and may be later.
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

/// A record, or what is left of it.
pub(crate) type Decoded = Result<Record, Unreadable>;

impl Decoder<'_> {
    /// Reads a stored value, which must have the checksum if there is one.
    pub(crate) async fn value(
        &self,
        key: Key,
        revision: i64,
        stored: &[u8],
        checksum: Option<i64>,
    ) -> Result<Decoded, DecodeError> {
        let checked = codec::decode(stored).and_then(|value| {
            checksum::verify(&key, revision, &value, checksum).map_err(str::to_owned).map(|()| value)
        });
        let json = match checked {
            Err(reason) => return Ok(Err(Unreadable::new(key, revision, &reason))),
            Ok(value) => match self.seal.open(&key, value).await {
                Ok(Opened { json, .. }) => json,
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
                let value = Value::new(&*json, indexed).stored_as(stored.len());
                Ok(Record { key, revision, value })
            }
            Err(reason) => Err(Unreadable::new(key, revision, &reason)),
        })
    }

    /// Whether a stored value is not sealed as it would be now. What is damaged is: it is written anew from what was read before.
    pub(crate) async fn is_stale(&self, key: &Key, stored: &[u8]) -> Result<bool, StoreError> {
        let Ok(stored) = codec::decode(stored) else { return Ok(true) };
        match self.seal.open(key, stored).await {
            Ok(opened) => Ok(opened.stale),
            Err(error) => Err(StoreError::Sealed { key: key.clone(), reason: error.to_string() }),
        }
    }

    /// Counts an object by how it is sealed; one without a key cannot be read.
    pub(crate) async fn count(
        &self,
        counted: &mut SealedOtherwise,
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
