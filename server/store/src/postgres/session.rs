//! Single connection to the database, with timeouts on both sides.
//!
//! Every step has a timeout, because a host that has vanished sends no response. The database has timeouts as well, so that the
//! locks of a stalled process are released.

use std::time::Duration;

use sqlx::{ConnectOptions, Connection, Executor, PgConnection};
use tokio::time::timeout;

use super::failure;
use super::settings::PostgresSettings;

/// Difference between the timeout of this process and that of the database, whose error is more useful than
/// a timeout here.
const GRACE: Duration = Duration::from_secs(1);

/// Begins a transaction. A stricter isolation, which may be the default of the database, could abort it in
/// favor of concurrent ones.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
/// Ends a transaction without writes; no statement stays prepared for the next client.
const END_POOLED: &str = "ROLLBACK; DEALLOCATE ALL";
/// Commits a transaction; no statement stays prepared for the next client.
const COMMIT_POOLED: &str = "COMMIT; DEALLOCATE ALL";

/// Purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reads. Long results are read row by row, without a timeout for the whole statement.
    Read,
    Write,
}

impl PostgresSettings {
    /// Returns the SQL that ends a transaction without writes.
    pub(super) fn end_sql(&self) -> &'static str {
        if self.transaction_pooler { END_POOLED } else { "ROLLBACK" }
    }

    /// Returns the SQL that commits a transaction.
    pub(super) fn commit_sql(&self) -> &'static str {
        if self.transaction_pooler { COMMIT_POOLED } else { "COMMIT" }
    }

    /// Returns the timeout of one step of the database.
    pub(super) fn step_timeout(&self) -> Duration {
        self.statement_timeout + GRACE
    }

    /// Returns the SQL that begins a transaction with locks: a process that stalls loses them after half the time for which
    /// others wait for the lock.
    pub(super) fn begin_locking_sql(&self) -> String {
        let timeout_ms = milliseconds(self.statement_timeout);
        format!(
            "{BEGIN}; SET LOCAL idle_in_transaction_session_timeout = {}; \
             SET LOCAL statement_timeout = {timeout_ms}",
            (timeout_ms / 2).max(1)
        )
    }

    /// Returns the SQL that begins a transaction behind a pooler, whose connections lack the limits of [`connect`].
    pub(super) fn begin_pooled_sql(&self) -> String {
        let timeout_ms = milliseconds(self.statement_timeout);
        format!("{BEGIN}; SET LOCAL idle_in_transaction_session_timeout = {timeout_ms}")
    }
}

/// Converts to milliseconds, at least one, because 0 means no limit.
fn milliseconds(time: Duration) -> u128 {
    time.as_millis().max(1)
}

/// Runs work with a timeout.
pub(super) async fn with_timeout<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    timeout(limit, work).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

/// Runs statements without arguments.
pub(super) async fn run(connection: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(sql))).await.map(drop)
}

/// Opens a connection, with a timeout.
pub(super) async fn connect(
    settings: &PostgresSettings,
    purpose: Purpose,
) -> Result<PgConnection, sqlx::Error> {
    let connected = async {
        let mut connection = settings.options().connect().await?;
        if !settings.transaction_pooler {
            set_limits(&mut connection, settings.statement_timeout, purpose).await?;
            set_parameter(&mut connection, "default_transaction_isolation", "read committed").await?;
            if purpose == Purpose::Write {
                require_durability(&mut connection).await?;
            }
        }
        Ok(connection)
    };
    with_timeout(settings.step_timeout(), connected).await
}

/// Sets timeouts in the database: for statements, and for detecting that this process is gone.
async fn set_limits(
    connection: &mut PgConnection,
    timeout: Duration,
    purpose: Purpose,
) -> Result<(), sqlx::Error> {
    let timeout_ms = milliseconds(timeout).to_string();
    let mut limits =
        vec!["idle_in_transaction_session_timeout", "tcp_user_timeout", "client_connection_check_interval"];
    if purpose == Purpose::Write {
        limits.push("statement_timeout");
    }
    for name in limits {
        set_parameter(connection, name, &timeout_ms).await?;
    }
    Ok(())
}

/// Makes commits wait until they are on disk if the default differs, and warns about settings that a session cannot change.
async fn require_durability(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    const SETTINGS: &str = "SELECT name, setting FROM pg_catalog.pg_settings \
        WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')";
    let found: Vec<(String, String)> = match sqlx::query_as(SETTINGS).fetch_all(&mut *connection).await {
        Err(error) if failure::is_connection_lost(&error) => return Err(error),
        // Some servers with PostgreSQL's protocol do not support this query.
        found => found.unwrap_or_default(),
    };
    for (name, setting) in found {
        match (&*name, &*setting) {
            ("synchronous_commit", "off" | "local") => set_parameter(connection, &name, "on").await?,
            ("fsync" | "full_page_writes", "off") => {
                tracing::warn!(name, setting, "database setting risks the loss of acknowledged writes");
            }
            _ => {}
        }
    }
    Ok(())
}

/// Warns if the connection is not encrypted although a password was sent over the network: by default TLS is used only if the
/// server offers it.
pub(super) async fn warn_if_readable(connection: &mut PgConnection, settings: &PostgresSettings) {
    const ENCRYPTED: &str = "SELECT ssl FROM pg_catalog.pg_stat_ssl WHERE pid = pg_backend_pid()";
    // Behind a pooler, the result would describe the pooler's connection.
    if settings.transaction_pooler || !settings.has_remote_password() {
        return;
    }
    let encrypted = sqlx::query_scalar(ENCRYPTED).fetch_one(connection);
    match with_timeout(settings.step_timeout(), encrypted).await {
        Ok(true) => {}
        Ok(false) => tracing::warn!(
            database = settings.place(),
            "database connection is not encrypted; set sslmode=verify-full and sslrootcert in --database-url"
        ),
        Err(error) => {
            tracing::debug!(
                error = failure::log_text(&error),
                "cannot determine whether the database connection is encrypted"
            );
        }
    }
}

/// Removes the statement timeout for work on whole tables. Other writers queue behind its wait for a lock, so the wait has
/// a limit that their timeouts allow.
pub(super) async fn allow_long_work(
    connection: &mut PgConnection,
    settings: &PostgresSettings,
) -> Result<(), sqlx::Error> {
    if settings.transaction_pooler {
        return Ok(());
    }
    let timeout_ms = (milliseconds(settings.statement_timeout) / 2).max(1).to_string();
    with_timeout(settings.step_timeout(), set_parameter(connection, "statement_timeout", "0")).await?;
    with_timeout(settings.step_timeout(), set_parameter(connection, "lock_timeout", &timeout_ms)).await
}

/// Restores the limits of a writer after [`allow_long_work`].
pub(super) async fn end_long_work(
    connection: &mut PgConnection,
    settings: &PostgresSettings,
) -> Result<(), sqlx::Error> {
    if settings.transaction_pooler {
        return Ok(());
    }
    let timeout_ms = milliseconds(settings.statement_timeout).to_string();
    with_timeout(settings.step_timeout(), set_parameter(connection, "lock_timeout", "0")).await?;
    with_timeout(settings.step_timeout(), set_parameter(connection, "statement_timeout", &timeout_ms)).await
}

/// Changes a setting if the database has it: some servers with PostgreSQL's protocol, and some operating systems, lack settings.
async fn set_parameter(connection: &mut PgConnection, name: &str, value: &str) -> Result<(), sqlx::Error> {
    const SET: &str = "SELECT set_config(name, $2, false) FROM pg_catalog.pg_settings WHERE name = $1";
    match sqlx::query(SET).bind(name).bind(value).execute(&mut *connection).await {
        Err(error) if failure::is_connection_lost(&error) => Err(error),
        Err(error) => {
            tracing::debug!(name, error = failure::log_text(&error), "cannot change a session setting");
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

/// Closes a connection gracefully.
pub(super) async fn close(connection: PgConnection, limit: Duration) {
    if let Err(error) = with_timeout(limit, connection.close()).await {
        tracing::debug!(error = failure::log_text(&error), "cannot close the database connection cleanly");
    }
}
