//! Stored values as records: opened, indexed, or named as unreadable.

use crate::codec;
use crate::index::Indexer;
use crate::key::Key;
use crate::record::{Record, Value};
use crate::seal::{Opened, Seal, SealError};
use crate::unreadable::Unreadable;

/// What reading values needs.
#[derive(Clone, Copy)]
pub(crate) struct Decoder<'a> {
    pub(crate) indexer: &'a dyn Indexer,
    pub(crate) seal: &'a Seal,
}

/// Why nothing can be said of a value.
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
    /// Reads a stored value.
    pub(crate) async fn value(&self, key: Key, revision: i64, stored: &[u8]) -> Result<Decoded, DecodeError> {
        let json = match codec::decode(stored) {
            Err(reason) => return Ok(Err(Unreadable::new(key, revision, &reason))),
            Ok(value) => match self.seal.open(&key, value).await {
                Ok(Opened { json, .. }) => json,
                Err(SealError::Refused { text, .. }) => {
                    return Ok(Err(Unreadable::sealed(key, revision, &text)));
                }
                Err(SealError::Unavailable { text, .. }) => {
                    return Err(DecodeError::Sealed { key, reason: text });
                }
            },
        };
        Ok(match self.indexer.index(key.resource(), &json) {
            Ok(indexed) => {
                let value = Value::new(&*json, indexed).stored_as(stored.len());
                Ok(Record { key, revision, value })
            }
            Err(error) => Err(Unreadable::new(key, revision, &error.0)),
        })
    }
}
