//! Connects to a database, migrates its schema, and reads its identity.

use std::path::PathBuf;
use std::time::Duration;

use portico_gostd::os::error_text;
use portico_gostd::time::format_duration;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{PgConnection, SqlSafeStr};
use tokio::time::{Instant, sleep_until};

use super::failure::{self, reason};
use super::high_water::HighWaterRecord;
pub(super) use super::meta::{Meta, lock_meta, meta};
use super::session::{self, BEGIN, Purpose, run, with_timeout};
use super::settings::PostgresSettings;
use crate::key::Resource;
use crate::outage_log::OutageLog;

/// All migrations in order. Their text never changes after a release: sqlx stores a checksum. The description of a migration
/// that the previous release does not tolerate begins with [`INCOMPATIBLE`]; all other migrations are only additions.
const MIGRATIONS: [(i64, &str, &str); 4] = [
    (1, "store", include_str!("../../../../migrations/postgres/0001_store.sql")),
    (2, "deleting", include_str!("../../../../migrations/postgres/0002_deleting.sql")),
    (3, "archive", include_str!("../../../../migrations/postgres/0003_archive.sql")),
    (4, "checksum", include_str!("../../../../migrations/postgres/0004_checksum.sql")),
];
/// Prefix of the description of a migration that is more than an addition.
const INCOMPATIBLE: &str = "incompatible";
/// Delay between attempts to reach the database.
pub(super) const RETRY_DELAY: Duration = Duration::from_millis(250);

/// Reason why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The database cannot be reached, or rejects the connection.
    #[error("{place}: {}", reason(error))]
    Unreachable {
        /// Address of the database, without the password.
        place: String,
        /// Error of the connection.
        error: sqlx::Error,
    },
    /// The database was written by a newer Portico.
    #[error(
        "{place} has schema version {found}, this portico supports up to {}: use a newer portico",
        known + 1
    )]
    TooNew {
        /// Address of the database, without the password.
        place: String,
        /// Schema version of the database.
        found: i64,
        /// Newest version that this program supports.
        known: i64,
    },
    /// The server is a standby, which replicates another server.
    #[error("{place}: the server is a standby: the address must resolve to the primary only")]
    Standby {
        /// Address of the database, without the password.
        place: String,
    },
    /// The schema is of the next Portico and not compatible with this one.
    #[error(
        "{place} has schema version {found} ({description}), which this portico does not support (up to {known}): use a newer portico"
    )]
    Incompatible {
        /// Address of the database, without the password.
        place: String,
        /// Schema version of the database.
        found: i64,
        /// Description of that version.
        description: String,
        /// Newest version that this program supports.
        known: i64,
    },
    /// The file with the recorded head cannot be read.
    #[error("{}: {}", path.display(), error_text(error))]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// A migration failed.
    #[error("{place}: {error}")]
    Migration {
        /// Address of the database, without the password.
        place: String,
        /// Migration and reason.
        error: Box<MigrateError>,
    },
}

/// State of a database that was opened.
pub(super) struct OpenDatabase {
    pub(super) writer: PgConnection,
    pub(super) meta: Meta,
    /// Last row of the log: revision and commit ID.
    pub(super) tail: Option<(i64, i64)>,
    pub(super) resources: Vec<Resource>,
    /// True if the database supports notifications (`pg_notify`); some servers with PostgreSQL's protocol do not.
    pub(super) supports_notify: bool,
}

/// Opens the database, creating its tables if they are missing. Waits for an unavailable database for up to
/// [`PostgresSettings::connect_timeout`].
pub(super) async fn open(
    settings: &PostgresSettings,
    recorded: &HighWaterRecord,
) -> Result<OpenDatabase, PostgresError> {
    let deadline = Instant::now() + settings.connect_timeout;
    let mut outage = OutageLog::default();
    loop {
        match try_open(settings, recorded).await {
            Err(error) if is_transient(&error) && Instant::now() + RETRY_DELAY < deadline => {
                if let Some(outage_seconds) = outage.record_failure() {
                    let timeout = format_duration(settings.connect_timeout);
                    tracing::warn!(%error, outage_seconds, timeout, "cannot open the database, retrying");
                }
                sleep_until(Instant::now() + RETRY_DELAY).await;
            }
            Ok(mut opened) => {
                if let Some(outage_seconds) = outage.record_success() {
                    tracing::info!(outage_seconds, "database available");
                }
                session::warn_if_readable(&mut opened.writer, settings).await;
                return Ok(opened);
            }
            Err(error) => return Err(error),
        }
    }
}

/// True if an error may be temporary: the server is not reachable yet, another control service creates the tables or holds
/// locks on them, or another server becomes the primary.
fn is_transient(error: &PostgresError) -> bool {
    match error {
        PostgresError::Unreachable { error, .. } => {
            failure::is_connection_lost(error) || failure::is_retryable(error)
        }
        PostgresError::Migration { error, .. } => match &**error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                failure::is_connection_lost(error)
                    || failure::is_retryable(error)
                    || failure::is_lock_timeout(error)
                    || failure::is_duplicate(error)
            }
            _ => false,
        },
        PostgresError::Standby { .. } => true,
        PostgresError::TooNew { .. } | PostgresError::Incompatible { .. } | PostgresError::File { .. } => {
            false
        }
    }
}

async fn try_open(
    settings: &PostgresSettings,
    recorded: &HighWaterRecord,
) -> Result<OpenDatabase, PostgresError> {
    let place = settings.place();
    let unreachable = |error| PostgresError::Unreachable { place: place.clone(), error };
    let mut writer = session::connect(settings, Purpose::Write).await.map_err(unreachable)?;
    prepare(&mut writer, settings).await?;
    let looked = with_timeout(settings.step_timeout(), read_state(writer, settings, recorded));
    looked.await.map_err(unreachable)
}

/// Migrates a database to the schema of this program. Rejects a standby.
pub(super) async fn prepare(
    connection: &mut PgConnection,
    settings: &PostgresSettings,
) -> Result<(), PostgresError> {
    let place = settings.place();
    let unreachable = |error| PostgresError::Unreachable { place: place.clone(), error };
    with_timeout(settings.step_timeout(), run(connection, BEGIN)).await.map_err(unreachable)?;
    if with_timeout(settings.step_timeout(), is_standby(connection)).await.map_err(unreachable)? {
        return Err(PostgresError::Standby { place });
    }
    let is_current = is_current(connection, settings, &place).await?;
    with_timeout(settings.step_timeout(), run(connection, settings.end_sql())).await.map_err(unreachable)?;
    if is_current { Ok(()) } else { migrate(connection, settings, &place).await }
}

/// Reads the state of a database that has its tables.
async fn read_state(
    mut writer: PgConnection,
    settings: &PostgresSettings,
    recorded: &HighWaterRecord,
) -> Result<OpenDatabase, sqlx::Error> {
    const TAIL: &str =
        "SELECT revision, commit_id FROM log WHERE revision <= $1 ORDER BY revision DESC LIMIT 1";
    run(&mut writer, BEGIN).await?;
    let meta = init_meta(&mut writer, settings).await?;
    let meta = recorded.begin_epoch_if_lost(&mut writer, settings, meta).await?;
    let resources = resources(&mut writer).await?;
    let tail = sqlx::query_as(TAIL).bind(meta.revision).fetch_optional(&mut writer).await?;
    let supports_notify = has_function(&mut writer, "pg_notify").await?;
    run(&mut writer, settings.end_sql()).await?;
    Ok(OpenDatabase { writer, meta, tail, resources, supports_notify })
}

/// True if a server is a standby: it may be behind, and its commits may be discarded by a failover.
pub(super) async fn is_standby(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    match has_function(connection, "pg_is_in_recovery").await? {
        true => sqlx::query_scalar("SELECT pg_is_in_recovery()").fetch_one(connection).await,
        false => Ok(false),
    }
}

/// Returns true if a function exists: some servers with PostgreSQL's protocol lack functions.
async fn has_function(connection: &mut PgConnection, name: &str) -> Result<bool, sqlx::Error> {
    const SELECT: &str = "SELECT count(*) > 0 FROM pg_catalog.pg_proc WHERE proname = $1";
    sqlx::query_scalar(SELECT).bind(name).fetch_one(connection).await
}

/// Returns true if a database has the schema of this program, or a compatible newer one, since control services are
/// upgraded one after the other. Rejects unknown versions.
pub(super) async fn is_current(
    writer: &mut PgConnection,
    settings: &PostgresSettings,
    place: &str,
) -> Result<bool, PostgresError> {
    let known = MIGRATIONS.iter().map(|(version, ..)| *version).max().unwrap_or(0);
    let unreachable = |error| PostgresError::Unreachable { place: place.to_owned(), error };
    let found = with_timeout(settings.step_timeout(), schema_version(writer)).await.map_err(unreachable)?;
    if found <= known {
        return Ok(found == known);
    }
    if found > known + 1 {
        return Err(PostgresError::TooNew { place: place.to_owned(), found, known });
    }
    let description = "SELECT description FROM _sqlx_migrations WHERE version = $1";
    let description = sqlx::query_scalar(description).bind(found).fetch_one(writer);
    let description: String =
        with_timeout(settings.step_timeout(), description).await.map_err(unreachable)?;
    if description.starts_with(INCOMPATIBLE) {
        return Err(PostgresError::Incompatible { place: place.to_owned(), found, description, known });
    }
    tracing::info!(found, known, description, "database has the schema of the next release, continuing");
    Ok(true)
}

/// Migrates a database to the schema of this program. Other processes may be writing to it.
async fn migrate(
    writer: &mut PgConnection,
    settings: &PostgresSettings,
    place: &str,
) -> Result<(), PostgresError> {
    let migrations = MIGRATIONS.map(|(version, description, sql)| {
        Migration::new(version, description.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let mut migrator = Migrator::with_migrations(migrations.to_vec());
    // Locking uses advisory locks, which some servers lack. One of two concurrent migrations fails and is retried.
    migrator.set_locking(false);
    let failed = |error| PostgresError::Migration { place: place.to_owned(), error: Box::new(error) };
    let unreachable = |error| PostgresError::Unreachable { place: place.to_owned(), error };
    session::allow_long_work(writer, settings).await.map_err(unreachable)?;
    migrator.run_direct(None, &mut *writer, false).await.map_err(failed)?;
    session::end_long_work(writer, settings).await.map_err(unreachable)
}

/// Returns the newest applied migration; 0 for a new database.
pub(super) async fn schema_version(writer: &mut PgConnection) -> Result<i64, sqlx::Error> {
    let tables = "SELECT count(*) FROM information_schema.tables \
        WHERE table_schema = current_schema() AND table_name = '_sqlx_migrations'";
    let tables: i64 = sqlx::query_scalar(tables).fetch_one(&mut *writer).await?;
    if tables == 0 {
        return Ok(0);
    }
    sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM _sqlx_migrations").fetch_one(writer).await
}

/// Reads the row of `meta`. Creates the identity of a new store, whose first write has revision 2 like upstream's.
async fn init_meta(writer: &mut PgConnection, settings: &PostgresSettings) -> Result<Meta, sqlx::Error> {
    let insert = "INSERT INTO meta (id, store_id, epoch, revision, compacted, commit_id) VALUES (1, $1, 1, 1, 0, 0) \
        ON CONFLICT DO NOTHING";
    sqlx::query(insert).bind(uuid::Uuid::new_v4().to_string()).execute(&mut *writer).await?;
    let insert = "INSERT INTO swept (id, revision) VALUES (1, 0) ON CONFLICT DO NOTHING";
    sqlx::query(insert).execute(&mut *writer).await?;
    run(writer, settings.commit_sql()).await?;
    run(writer, BEGIN).await?;
    meta(writer).await
}

/// Returns all resources with a row, each found by one index lookup.
pub(super) async fn resources(writer: &mut PgConnection) -> Result<Vec<Resource>, sqlx::Error> {
    const SELECT: &str = "WITH RECURSIVE found AS ((SELECT resource FROM log ORDER BY resource LIMIT 1) UNION ALL \
        SELECT (SELECT l.resource FROM log l WHERE l.resource > f.resource ORDER BY l.resource LIMIT 1) \
        FROM found f WHERE f.resource IS NOT NULL) SELECT resource FROM found WHERE resource IS NOT NULL";
    let names: Vec<String> = sqlx::query_scalar(SELECT).fetch_all(writer).await?;
    Ok(names.iter().map(|name| super::row::resource(name)).collect())
}
