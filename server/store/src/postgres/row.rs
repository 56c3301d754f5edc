//! Encoding of texts and keys in columns.
//!
//! PostgreSQL's texts cannot contain NUL, which names of some kinds and UIDs of owners may: it is encoded as U+0001 U+0001, and
//! U+0001 as U+0001 U+0002. The order is preserved.

use std::borrow::Cow;

use sqlx::postgres::PgRow;
use sqlx::{Error, Row};

use crate::decode::{DecodeError, Decoded, Decoder};
use crate::key::{Key, Resource, split_path};
use crate::txn::{Change, Operation};

/// Maximum size of an index entry: a third of a page, less the overhead.
const INDEX_BYTES: usize = 2_600;

/// Returns the resource of a column: its plural, a dot and its group.
pub(super) fn resource(name: &str) -> Resource {
    let (resource, group) = name.split_once('.').unwrap_or((name, ""));
    Resource::new(group, resource)
}

/// Encodes a text for a column.
pub(super) fn to_column(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', '\u{1}']) {
        return text.into();
    }
    text.replace('\u{1}', "\u{1}\u{2}").replace('\0', "\u{1}\u{1}").into()
}

/// Decodes a text from a column.
pub(super) fn from_column(column: &str) -> Cow<'_, str> {
    if !column.contains('\u{1}') {
        return column.into();
    }
    let mut text = String::with_capacity(column.len());
    let mut characters = column.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\u{1}' if characters.next() == Some('\u{1}') => '\0',
            other => other,
        });
    }
    text.into()
}

/// Returns the columns namespace (with its trailing '/') and name of a path.
pub(super) fn columns(path: &str) -> (Cow<'_, str>, Cow<'_, str>) {
    let (namespace, name) = split_path(path);
    (to_column(namespace), to_column(name))
}

/// Returns the key of an object from the columns namespace (with its trailing '/'), name.
pub(super) fn key(resource: &Resource, row: &PgRow, first_column: usize) -> Result<Key, Error> {
    let (namespace, name): (&str, &str) = (row.try_get(first_column)?, row.try_get(first_column + 1)?);
    Ok(Key::new(resource, &from_column(namespace.trim_end_matches('/')), &from_column(name)))
}

/// Returns the reason if the key of an operation, or an owner UID with it, does not fit into an index.
pub(super) fn exceeds_index(operation: &Operation) -> Option<String> {
    let Operation { key, change, .. } = operation;
    let (namespace, name) = columns(key.path());
    let key_bytes = key.resource().to_string().len() + namespace.len() + name.len();
    let owners = match change {
        Change::Put(value) => value.owners(),
        Change::Delete(_) | Change::Check => &[],
    };
    let longest = owners.iter().map(|owner| to_column(owner).len()).max().unwrap_or_default();
    let bytes = key_bytes + longest;
    let description = if key_bytes > INDEX_BYTES { "name" } else { "name and owner UID" };
    (bytes > INDEX_BYTES).then(|| format!("{key}: {bytes} bytes of {description}, at most {INDEX_BYTES}"))
}

impl Decoder<'_> {
    /// Decodes a state from the columns namespace, name, revision, value, and from `checksum`.
    pub(super) async fn decode_pg_row(
        &self,
        resource: &Resource,
        row: &PgRow,
        first_column: usize,
    ) -> Result<Decoded, DecodeError> {
        let (revision, value): (i64, &[u8]) =
            (row.try_get(first_column + 2)?, row.try_get(first_column + 3)?);
        self.decode(key(resource, row, first_column)?, revision, value, row.try_get("checksum")?).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip_through_columns_and_keep_their_order() {
        let texts = [
            "",
            "\0",
            "\0\0",
            "\0\u{1}",
            "\0a",
            "\u{1}",
            "\u{1}\0",
            "\u{1}\u{1}",
            "\u{2}",
            "a",
            "a\0",
            "a\u{1}b",
            "ä",
        ];
        for text in texts {
            assert_eq!(from_column(&to_column(text)), text, "{text:?}");
            assert!(!to_column(text).contains('\0'));
        }
        let columns: Vec<_> = texts.iter().map(|text| to_column(text)).collect();
        assert!(columns.is_sorted(), "{columns:?}");
    }
}
