//! Reads columns of rows that may be damaged. Damaged columns are reported and do not fail queries over other rows.

use std::borrow::Cow;

use sqlx::sqlite::SqliteRow;
use sqlx::{Error, Row, Sqlite, Type, TypeInfo, ValueRef};

use crate::key::{Key, Resource, split_path};
use crate::unreadable::Unreadable;

/// Prefix of a byte that is not UTF-8 in displayed text.
const ESCAPE: &str = "\\x";

/// Value of a text column.
pub(crate) enum Text<'r> {
    /// Valid text.
    Valid(&'r str),
    /// Displayable remains of a value that is not UTF-8 or not text.
    Damaged(String),
}

/// Key that cannot be read.
pub(crate) struct DamagedKey {
    /// Displayable remains of the key, not for lookups.
    pub(crate) remains: Key,
    /// True if the namespace is intact.
    is_namespace_valid: bool,
    reason: &'static str,
}

impl DamagedKey {
    /// True if the row may belong to this namespace.
    pub(crate) fn may_be_in(&self, namespace: &str) -> bool {
        !self.is_namespace_valid || self.remains.namespace() == namespace
    }

    pub(crate) fn reason(&self) -> &'static str {
        self.reason
    }
}

impl<'r> Text<'r> {
    pub(crate) fn valid(self) -> Option<&'r str> {
        match self {
            Self::Valid(text) => Some(text),
            Self::Damaged(_) => None,
        }
    }

    pub(crate) fn into_display(self) -> Cow<'r, str> {
        match self {
            Self::Valid(text) => text.into(),
            Self::Damaged(text) => text.into(),
        }
    }

    fn is_valid(&self) -> bool {
        matches!(self, Self::Valid(_))
    }
}

/// Reads a text column.
pub(crate) fn text(row: &SqliteRow, column: usize) -> Result<Text<'_>, Error> {
    let value = row.try_get_raw(column)?;
    let is_text = !value.is_null() && value.type_info().name() == <str as Type<Sqlite>>::type_info().name();
    let bytes: &[u8] = row.try_get_unchecked(column)?;
    Ok(match std::str::from_utf8(bytes) {
        Ok(text) if is_text => Text::Valid(text),
        _ => Text::Damaged(escape(bytes)),
    })
}

/// True if a resource may be the one with this unreadable name: the readable columns are equal.
pub(crate) fn may_be_resource(remains: &Resource, resource: &Resource) -> bool {
    let may_be_equal =
        |column: &str, name: &str| column.is_empty() || column.contains(ESCAPE) || column == name;
    may_be_equal(&remains.group, &resource.group) && may_be_equal(&remains.resource, &resource.resource)
}

/// Returns bytes for display: UTF-8 unchanged, other bytes as `\xff`.
fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("{ESCAPE}{byte:02x}")));
    }
    out
}

/// Reads a resource from the columns group, resource. Returns the displayable remains as `Err` if the name cannot be read.
pub(crate) fn resource(row: &SqliteRow, first_column: usize) -> Result<Result<Resource, Resource>, Error> {
    let (group, name) = (text(row, first_column)?, text(row, first_column + 1)?);
    let is_valid = group.is_valid() && name.is_valid();
    let resource = Resource::new(group.into_display(), name.into_display());
    Ok(if is_valid { Ok(resource) } else { Err(resource) })
}

/// Reads the key of an object from the columns namespace, name.
pub(crate) fn key(
    resource: &Resource,
    row: &SqliteRow,
    first_column: usize,
) -> Result<Result<Key, DamagedKey>, Error> {
    let (namespace, name) = (text(row, first_column)?, text(row, first_column + 1)?);
    let (namespace_is_good, name_is_good) = (namespace.is_valid(), name.is_valid());
    let (namespace, name) = (namespace.into_display(), name.into_display());
    let remains = Key::new(resource, namespace.trim_end_matches('/'), &name);
    // A key that differs from the columns would belong to another object.
    let is_key = split_path(remains.path()) == (&*namespace, &*name);
    let reason = match (namespace_is_good, name_is_good) {
        (true, true) if is_key => return Ok(Ok(remains)),
        (true, true) => "invalid namespace or name",
        (true, false) => "the name is not UTF-8",
        (false, true) => "the namespace is not UTF-8",
        (false, false) => "the namespace and name are not UTF-8",
    };
    let is_namespace = |text: &str| !text.is_empty() && !text.contains('/');
    let is_namespace_valid =
        namespace_is_good && (namespace.is_empty() || namespace.strip_suffix('/').is_some_and(is_namespace));
    Ok(Err(DamagedKey { remains, is_namespace_valid, reason }))
}

/// Reads the checksum of a state from a column; a damaged column yields another value, which does not match.
pub(crate) fn checksum(row: &SqliteRow, column: &str) -> Result<Option<i64>, Error> {
    row.try_get_unchecked(column)
}

/// Reads a state of a resource whose name cannot be read, from the columns namespace, name, revision.
pub(crate) fn unreadable_of_resource(
    remains: &Resource,
    row: &SqliteRow,
    first_column: usize,
) -> Result<Unreadable, Error> {
    let key = match key(remains, row, first_column)? {
        Ok(key) => key,
        Err(damaged) => damaged.remains,
    };
    let revision = row.try_get_unchecked(first_column + 2)?;
    Ok(Unreadable::without_key(key, revision, "the name of the resource is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

    async fn read(namespace: &str, name: &str) -> Result<Key, (String, &'static str, bool)> {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        let select = AssertSqlSafe(format!("SELECT {namespace}, {name}"));
        let row = sqlx::query(select).fetch_one(&mut connection).await.unwrap();
        let read = key(&Resource::new("", "things"), &row, 0).unwrap();
        read.map_err(|key| (key.remains.path().to_owned(), key.reason(), key.may_be_in("other")))
    }

    #[tokio::test]
    async fn a_key_is_valid_only_if_it_equals_the_columns_of_its_row() {
        assert_eq!(read("'a/'", "'b'").await.unwrap().path(), "a/b");
        assert_eq!(read("''", "'b'").await.unwrap().path(), "b");
        let no_key = "invalid namespace or name";
        for (namespace, name, remains, reason, may_be_elsewhere) in [
            ("'a/'", "CAST(x'62ff' AS TEXT)", r"a/b\xff", "the name is not UTF-8", false),
            ("CAST(x'ff2f' AS TEXT)", "'b'", r"\xff/b", "the namespace is not UTF-8", true),
            ("x'612f'", "'b'", "a/b", "the namespace is not UTF-8", true),
            ("NULL", "NULL", "", "the namespace and name are not UTF-8", true),
            ("'a'", "'b'", "a/b", no_key, true),
            ("'a//'", "'b'", "a/b", no_key, true),
            ("'/'", "'b'", "b", no_key, true),
            ("''", "'a/b'", "a/b", no_key, false),
        ] {
            let read = read(namespace, name).await.map(|key| key.to_string());
            assert_eq!(read, Err((remains.to_owned(), reason, may_be_elsewhere)), "{namespace} {name}");
        }
    }
}
