//! Reads the columns of rows.

use sqlx::postgres::PgRow;
use sqlx::{Error, Row};

use crate::decode::{DecodeError, Decoded, Decoder};
use crate::key::{Key, Resource};

/// The resource of a column: its plural, a dot and its group.
pub(super) fn resource(name: &str) -> Resource {
    let (resource, group) = name.split_once('.').unwrap_or((name, ""));
    Resource::new(group, resource)
}

/// The key of an object from the columns namespace (with its closing '/'), name.
pub(super) fn key(resource: &Resource, row: &PgRow, at: usize) -> Result<Key, Error> {
    let (namespace, name): (&str, &str) = (row.try_get(at)?, row.try_get(at + 1)?);
    Ok(Key::new(resource, namespace.trim_end_matches('/'), name))
}

impl Decoder<'_> {
    /// Reads a state from the columns namespace, name, revision, value.
    pub(super) async fn pg_state(
        &self,
        resource: &Resource,
        row: &PgRow,
        at: usize,
    ) -> Result<Decoded, DecodeError> {
        let (revision, value): (i64, &[u8]) = (row.try_get(at + 2)?, row.try_get(at + 3)?);
        self.value(key(resource, row, at)?, revision, value).await
    }
}
