//! One connection to the database: made, bounded in time on both sides, ended.
//!
//! Whatever is asked of the database is given up after a time: a host that has vanished answers nothing, and says nothing either. The
//! database does the same with us: what a process that stands still has locked is free after a time.

use std::time::Duration;

use sqlx::{ConnectOptions, Connection, Executor, PgConnection};
use tokio::time::timeout;

use super::failure;
use super::settings::PostgresSettings;

/// How much longer than the database itself we wait for a statement to end: what it says of one that took too long is worth more
/// than our not knowing.
const GRACE: Duration = Duration::from_secs(1);

/// Begins a transaction. A stricter isolation, which the database may have by default, would end it in favour of others.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
/// Ends it without having written; nothing stays prepared for the next client.
const END_POOLED: &str = "ROLLBACK; DEALLOCATE ALL";
/// Ends it durably.
const COMMIT_POOLED: &str = "COMMIT; DEALLOCATE ALL";

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Long answers are read row by row: no time bounds them as a whole.
    Read,
    Write,
}

impl PostgresSettings {
    /// What ends a transaction without having written.
    pub(super) fn end(&self) -> &'static str {
        if self.transaction_pooler { END_POOLED } else { "ROLLBACK" }
    }

    /// What ends a transaction durably.
    pub(super) fn commit(&self) -> &'static str {
        if self.transaction_pooler { COMMIT_POOLED } else { "COMMIT" }
    }

    /// How long one step of the database is waited for.
    pub(super) fn patience(&self) -> Duration {
        self.statement_timeout + GRACE
    }

    /// Begins a transaction of one that locks: whoever stands still meanwhile loses it after half the time that others wait for
    /// the lock.
    pub(super) fn begin_locking(&self) -> String {
        let most = milliseconds(self.statement_timeout);
        format!(
            "{BEGIN}; SET LOCAL idle_in_transaction_session_timeout = {}; \
             SET LOCAL statement_timeout = {most}",
            (most / 2).max(1)
        )
    }

    /// Begins a transaction behind a pooler, whose connections have no limits of ours.
    pub(super) fn begin_pooled(&self) -> String {
        let most = milliseconds(self.statement_timeout);
        format!("{BEGIN}; SET LOCAL idle_in_transaction_session_timeout = {most}")
    }
}

/// At least one: none would be no limit.
fn milliseconds(time: Duration) -> u128 {
    time.as_millis().max(1)
}

/// What the database has not done after this time is given up.
pub(super) async fn in_time<T>(
    within: Duration,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    timeout(within, work).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

/// Runs statements without arguments.
pub(super) async fn run(connection: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(sql))).await.map(drop)
}

/// A connection, in time.
pub(super) async fn connect(
    settings: &PostgresSettings,
    purpose: Purpose,
) -> Result<PgConnection, sqlx::Error> {
    let connected = async {
        let mut connection = settings.options().connect().await?;
        if !settings.transaction_pooler {
            limit(&mut connection, settings.statement_timeout, purpose).await?;
            set(&mut connection, "default_transaction_isolation", "read committed").await?;
            if purpose == Purpose::Write {
                require_durability(&mut connection).await?;
            }
        }
        Ok(connection)
    };
    in_time(settings.patience(), connected).await
}

/// Has the database give up what takes too long, too, and notice that we are not there any more.
async fn limit(connection: &mut PgConnection, most: Duration, purpose: Purpose) -> Result<(), sqlx::Error> {
    let most = milliseconds(most).to_string();
    let mut limits =
        vec!["idle_in_transaction_session_timeout", "tcp_user_timeout", "client_connection_check_interval"];
    if purpose == Purpose::Write {
        limits.push("statement_timeout");
    }
    for name in limits {
        set(connection, name, &most).await?;
    }
    Ok(())
}

/// Has a commit wait until it is on disk, where the database is set not to, and warns of what no session can change.
async fn require_durability(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    const SETTINGS: &str = "SELECT name, setting FROM pg_catalog.pg_settings \
        WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')";
    let found: Vec<(String, String)> = match sqlx::query_as(SETTINGS).fetch_all(&mut *connection).await {
        Err(error) if failure::is_lost(&error) => return Err(error),
        // Not all that speak the protocol know it.
        found => found.unwrap_or_default(),
    };
    for (name, setting) in found {
        match (&*name, &*setting) {
            ("synchronous_commit", "off" | "local") => set(connection, &name, "on").await?,
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
    // Behind a pooler that is its own connection.
    if settings.transaction_pooler || !settings.has_remote_password() {
        return;
    }
    let encrypted = sqlx::query_scalar(ENCRYPTED).fetch_one(connection);
    match in_time(settings.patience(), encrypted).await {
        Ok(true) => {}
        Ok(false) => tracing::warn!(
            database = settings.place(),
            "database connection is not encrypted; set sslmode=verify-full and sslrootcert in --database-url"
        ),
        Err(error) => {
            tracing::debug!(
                error = failure::logged(&error),
                "cannot determine whether the database connection is encrypted"
            );
        }
    }
}

/// Lets a connection work on the tables for as long as that takes, on all that is stored. Other writers stand behind its wait for
/// a lock: that has a bound, within which they are patient.
pub(super) async fn allow_long_work(
    connection: &mut PgConnection,
    settings: &PostgresSettings,
) -> Result<(), sqlx::Error> {
    if settings.transaction_pooler {
        return Ok(());
    }
    let most = (milliseconds(settings.statement_timeout) / 2).max(1).to_string();
    in_time(settings.patience(), set(connection, "statement_timeout", "0")).await?;
    in_time(settings.patience(), set(connection, "lock_timeout", &most)).await
}

/// The limits of one that writes again, after [`allow_long_work`].
pub(super) async fn end_long_work(
    connection: &mut PgConnection,
    settings: &PostgresSettings,
) -> Result<(), sqlx::Error> {
    if settings.transaction_pooler {
        return Ok(());
    }
    let most = milliseconds(settings.statement_timeout).to_string();
    in_time(settings.patience(), set(connection, "lock_timeout", "0")).await?;
    in_time(settings.patience(), set(connection, "statement_timeout", &most)).await
}

/// Sets what the database has a setting for: not all that speak PostgreSQL's protocol know each, nor does each system that
/// PostgreSQL runs on.
async fn set(connection: &mut PgConnection, name: &str, value: &str) -> Result<(), sqlx::Error> {
    const SET: &str = "SELECT set_config(name, $2, false) FROM pg_catalog.pg_settings WHERE name = $1";
    match sqlx::query(SET).bind(name).bind(value).execute(&mut *connection).await {
        Err(error) if failure::is_lost(&error) => Err(error),
        Err(error) => {
            tracing::debug!(name, error = failure::logged(&error), "cannot change a session setting");
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

/// Ends a connection in order.
pub(super) async fn close(connection: PgConnection, within: Duration) {
    if let Err(error) = in_time(within, connection.close()).await {
        tracing::debug!(error = failure::logged(&error), "cannot close the database connection cleanly");
    }
}
