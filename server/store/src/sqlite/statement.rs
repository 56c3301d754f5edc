//! Builder of one text of several multi-row statements with their arguments: a group requires one hop to SQLite's thread.

use std::fmt::Write;

use sqlx::encode::Encode;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Arguments, AssertSqlSafe, Sqlite, SqliteConnection};

use super::failure::log_text;

/// Maximum number of rows in one VALUES list: far below SQLite's 32,766 parameters of a statement.
const MAX_ROWS: usize = 1_000;

/// Maximum number of rows of a batch that stays prepared: groups of 16 clients that each create objects sequentially.
/// Preparing takes as long as running; a prepared statement uses about a kilobyte per row.
const PREPARED_ROWS: usize = 32;

/// Rolls back the open transaction.
pub(crate) async fn rollback(connection: &mut SqliteConnection) {
    if let Err(error) = sqlx::query("ROLLBACK").execute(connection).await {
        // SQLite rolls back automatically after some errors.
        tracing::debug!(error = log_text(&error), "no transaction to roll back");
    }
}

/// Statements that run in order, with consecutively numbered arguments.
#[derive(Default)]
pub(crate) struct StatementBatch {
    sql: String,
    arguments: SqliteArguments,
    rows: usize,
}

impl StatementBatch {
    /// Appends a statement without arguments, or one whose `?` are bound by the next calls of [`StatementBatch::bind`].
    pub(crate) fn statement(&mut self, sql: &str) {
        self.sql.push_str(sql);
        self.sql.push(';');
    }

    /// Appends `head VALUES (row), (row) ... tail` with the arguments of each item, in as many statements as needed. `row` is
    /// the placeholder text, such as `(?,?)`. Appends nothing if there are no items.
    pub(crate) fn rows<T>(
        &mut self,
        head: &str,
        row: &str,
        tail: &str,
        items: &[T],
        bind: impl Fn(&mut Self, &T) -> Result<(), sqlx::Error>,
    ) -> Result<(), sqlx::Error> {
        for chunk in items.chunks(MAX_ROWS) {
            self.sql.push_str(head);
            for (index, item) in chunk.iter().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                // Writing to a String cannot fail.
                let _infallible = write!(self.sql, "{comma}{row}");
                bind(self, item)?;
            }
            self.statement(tail);
        }
        self.rows += items.len();
        Ok(())
    }

    /// Binds the next `?`.
    pub(crate) fn bind<'t, T: Encode<'t, Sqlite> + sqlx::Type<Sqlite>>(
        &mut self,
        value: T,
    ) -> Result<(), sqlx::Error> {
        self.arguments.add(value).map_err(sqlx::Error::Encode)
    }

    /// Runs all statements and returns their rows. Small batches stay prepared.
    pub(crate) async fn fetch(
        self,
        connection: &mut SqliteConnection,
    ) -> Result<Vec<sqlx::sqlite::SqliteRow>, sqlx::Error> {
        let is_prepared = self.rows <= PREPARED_ROWS;
        let query = sqlx::query_with(AssertSqlSafe(self.sql), self.arguments).persistent(is_prepared);
        query.fetch_all(connection).await
    }
}
