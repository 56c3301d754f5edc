//! A type as a document has it.

use serde::Serialize;
use serde_json::value::RawValue;

use super::schema::Schema;

/// A type as a document has it.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Definition {
    Typed(Box<Schema>),
    Own(Box<RawValue>),
}
