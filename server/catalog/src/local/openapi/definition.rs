//! A type definition in a document.

use serde::Serialize;
use serde_json::value::RawValue;

use super::schema::Schema;

/// A type definition in a document.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Definition {
    Typed(Box<Schema>),
    Custom(Box<RawValue>),
}
