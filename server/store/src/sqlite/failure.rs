//! Descriptions of database errors for callers, in Portico's words. Messages of SQLite, without those of its driver,
//! appear in the log.

use std::io;

const SQLITE_IOERR: i32 = 10;
const SQLITE_CORRUPT: i32 = 11;
const SQLITE_FULL: i32 = 13;
const SQLITE_CANTOPEN: i32 = 14;
const SQLITE_NOTADB: i32 = 26;
/// The index of the write-ahead log cannot grow.
const SQLITE_IOERR_SHMSIZE: i32 = 4_874;

/// Reason if no space is left, on the disk or below the size limit of the database.
pub(crate) const NO_SPACE: &str = "no space is left";

/// Returns the reason why the database rejected an operation.
pub(crate) fn reason(error: &sqlx::Error) -> &'static str {
    match error {
        sqlx::Error::Database(_) => sqlite_reason(code(error)),
        sqlx::Error::Io(_) => "cannot read or write the database file",
        sqlx::Error::PoolTimedOut => "timed out waiting for a connection",
        sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => "connection lost",
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => "cannot decode a stored row",
        _ => "request rejected",
    }
}

/// Returns true if an error means that no space is left. Calls `none_left` for errors that may have this cause: a quota
/// of the file system causes a failed write, a directory that cannot grow a file that cannot be opened.
pub(crate) fn lacks_space(error: &sqlx::Error, none_left: impl FnOnce() -> bool) -> bool {
    match code(error) {
        Some(SQLITE_FULL | SQLITE_IOERR_SHMSIZE) => true,
        Some(code) if matches!(code & 0xff, SQLITE_IOERR | SQLITE_CANTOPEN) => none_left(),
        _ => false,
    }
}

/// True if an error of a file means that no space is left.
pub(crate) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// True if a file could not grow. The last frame of a transaction, which commits it, was then not written.
pub(crate) fn is_full(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => is_no_space(error),
        error => code(error) == Some(SQLITE_FULL),
    }
}

/// True if an error shows that the file is damaged, so that a retry fails as well.
pub(crate) fn is_damage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => true,
        error => matches!(code(error).map(|code| code & 0xff), Some(SQLITE_CORRUPT | SQLITE_NOTADB)),
    }
}

fn code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

/// Returns the text for the log: the reason, and for an error of SQLite its message and code.
pub(crate) fn log_text(error: &sqlx::Error) -> String {
    let reason = reason(error);
    match error {
        sqlx::Error::Database(error) => {
            let code = error.code().unwrap_or_default();
            format!("{reason}: {} (code {code})", error.message())
        }
        sqlx::Error::Io(error) => format!("{reason}: {}", portico_gostd::os::error_text(error)),
        _ => reason.to_owned(),
    }
}

/// Returns the reason for a result code; extended codes contain the basic code in their last byte.
fn sqlite_reason(code: Option<i32>) -> &'static str {
    if code == Some(SQLITE_IOERR_SHMSIZE) {
        return NO_SPACE;
    }
    match code.map(|code| code & 0xff) {
        Some(5 | 6) => "locked by another process",
        Some(7) => "out of memory",
        Some(8) => "the database file is not writable",
        Some(SQLITE_IOERR) => "disk I/O error",
        Some(SQLITE_CORRUPT | SQLITE_NOTADB) => "the database file is damaged",
        Some(SQLITE_FULL) => NO_SPACE,
        Some(SQLITE_CANTOPEN) => "cannot open the database file",
        _ => "request rejected",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{Connection, SqliteConnection};

    #[tokio::test]
    async fn messages_of_sqlite_and_its_driver_are_not_reported() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        for (sql, expected) in [
            ("SELECT * FROM nowhere", "request rejected"),
            ("PRAGMA max_page_count = 1; CREATE TABLE a (b); CREATE TABLE c (d)", "no space is left"),
        ] {
            let error = sqlx::query(sql).execute(&mut connection).await.unwrap_err();
            assert_eq!(reason(&error), expected, "{error}");
            let logged = log_text(&error);
            assert!(
                logged.starts_with(&format!("{expected}: ")) && !logged.contains("returned from"),
                "{logged}"
            );
        }
        let codes = [Some(5), Some(517), Some(10), Some(778), Some(11), Some(26), Some(14), None, Some(4874)];
        let reasons: Vec<_> = codes.into_iter().map(sqlite_reason).collect();
        let locked = "locked by another process";
        let (disk, damaged) = ("disk I/O error", "the database file is damaged");
        let others = ["cannot open the database file", "request rejected", "no space is left"];
        assert_eq!(reasons, [[locked, locked, disk, disk].as_slice(), &[damaged, damaged], &others].concat());
    }
}
