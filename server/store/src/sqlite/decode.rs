//! Decodes rows of SQLite to records.

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::row;
use crate::decode::{DecodeError, Decoded, Decoder};
use crate::key::Resource;
use crate::unreadable::Unreadable;

impl Decoder<'_> {
    /// Decodes a state from the columns namespace, name, revision, value, and from `checksum`.
    pub(crate) async fn decode_row(
        &self,
        resource: &Resource,
        row: &SqliteRow,
        first_column: usize,
    ) -> Result<Decoded, DecodeError> {
        let (revision, value): (i64, &[u8]) =
            (row.try_get_unchecked(first_column + 2)?, row.try_get_unchecked(first_column + 3)?);
        match row::key(resource, row, first_column)? {
            Ok(key) => self.decode(key, revision, value, row::checksum(row, "checksum")?).await,
            Err(damaged) => {
                let reason = damaged.reason();
                Ok(Err(Unreadable::without_key(damaged.remains, revision, reason)))
            }
        }
    }
}
