//! What an error of the database is to whoever asked: a sentence of ours. SQLite's own words are for the log.

/// Why the database did not do what it was asked.
pub(crate) fn reason(error: &sqlx::Error) -> &'static str {
    match error {
        sqlx::Error::Database(error) => of_sqlite(error.code().and_then(|code| code.parse().ok())),
        sqlx::Error::Io(_) => "its file cannot be read or written",
        sqlx::Error::PoolTimedOut => "none of its connections came free in time",
        sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => "the connection to it is lost",
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => "a stored row cannot be read",
        _ => "it refused the request",
    }
}

/// Of a result code; the extended ones have the code that they extend in their last byte.
fn of_sqlite(code: Option<i32>) -> &'static str {
    match code.map(|code| code & 0xff) {
        Some(5 | 6) => "another process keeps it locked",
        Some(7) => "memory ran out",
        Some(8) => "its file cannot be written",
        Some(10) => "its disk failed",
        Some(11 | 26) => "its file is damaged",
        Some(13) => "no space is left",
        Some(14) => "its file cannot be opened",
        _ => "it refused the request",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{Connection, SqliteConnection};

    #[tokio::test]
    async fn no_words_of_sqlite_or_of_its_driver_are_said() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        for (sql, said) in [
            ("SELECT * FROM nowhere", "it refused the request"),
            ("PRAGMA max_page_count = 1; CREATE TABLE a (b); CREATE TABLE c (d)", "no space is left"),
        ] {
            let error = sqlx::query(sql).execute(&mut connection).await.unwrap_err();
            assert_eq!(reason(&error), said, "{error}");
        }
        let codes = [Some(5), Some(517), Some(10), Some(778), Some(11), Some(26), Some(14), None];
        let said: Vec<_> = codes.into_iter().map(of_sqlite).collect();
        let locked = "another process keeps it locked";
        let (disk, damaged) = ("its disk failed", "its file is damaged");
        let others = ["its file cannot be opened", "it refused the request"];
        assert_eq!(said, [[locked, locked, disk, disk].as_slice(), &[damaged, damaged], &others].concat());
    }
}
