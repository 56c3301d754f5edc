//! Opens a database file: lock, connections, schema, identity. Independent of transactions.

use std::path::Path;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row, SqlSafeStr, SqliteConnection};

use super::epoch::{self, DEFAULT_REVISION_BUMP};
use super::failure::log_text;
use super::lock::{self, FileLock};
use super::maintenance::BUSY_TIMEOUT;
use super::mark::{self, DatabaseIdentity, Mark, Verdict, sibling};
use super::open_error::OpenError;
use super::reader::CURRENT;
use super::{row, space};
use crate::identity::Identity;
use crate::key::Resource;
use crate::new_file::sync_folder_of;
use crate::settings::Settings;

/// All migrations in order. Their text never changes after a release: sqlx stores a checksum.
const MIGRATIONS: [(i64, &str, &str); 4] = [
    (1, "store", include_str!("../../../../migrations/sqlite/0001_store.sql")),
    (2, "deleting", include_str!("../../../../migrations/sqlite/0002_deleting.sql")),
    (3, "archive", include_str!("../../../../migrations/sqlite/0003_archive.sql")),
    (4, "checksum", include_str!("../../../../migrations/sqlite/0004_checksum.sql")),
];

/// Open database.
pub(crate) struct OpenDatabase {
    pub(crate) writer: SqliteConnection,
    pub(crate) readers: SqlitePool,
    pub(crate) contents: Contents,
}

/// Content of a database that is read when it is opened.
pub(crate) struct Contents {
    pub(crate) identity: Identity,
    pub(crate) revision: i64,
    pub(crate) compacted: i64,
    /// Resources by ID.
    pub(crate) resources: Vec<(i64, Resource)>,
    /// Other used IDs, which new resources must not get.
    pub(crate) reserved_ids: Vec<i64>,
    /// Remains of resource names that cannot be read, with the number of objects of each.
    pub(crate) unreadable_resources: Vec<(Resource, usize)>,
}

/// Locks and opens the database, after creating or migrating it if needed. Its write-ahead log takes over the blocks of the
/// reserve, so that there is space for it on a full disk.
pub(crate) async fn open(settings: &Settings) -> Result<(FileLock, OpenDatabase), OpenError> {
    let lock = lock::acquire(&settings.path)?;
    let reserved = space::release_reserve(&settings.path);
    match open_locked(settings).await {
        Ok(opened) => Ok((lock, opened)),
        Err(error) => {
            let path = settings.path.clone();
            portico_kit::tasks::blocking(move || space::restore_reserve(&path, reserved)).await;
            Err(error)
        }
    }
}

async fn open_locked(settings: &Settings) -> Result<OpenDatabase, OpenError> {
    let path = &settings.path;
    let database = path.clone();
    let mark = portico_kit::tasks::blocking(move || Mark::before_opening(&database)).await;
    let interrupted =
        || OpenError::File { path: path.clone(), error: std::io::Error::other("interrupted while reading") };
    let mark = mark.ok_or_else(interrupted)??;
    let connected = base_options(path).create_if_missing(true).connect().await;
    let mut writer = connected.map_err(|error| OpenError::Database { path: path.clone(), error })?;
    match prepare(&mut writer, settings, mark.as_ref()).await {
        Ok(contents) => {
            let readers = SqlitePoolOptions::new()
                .min_connections(0)
                // One more connection than configured, for occasional full scans that no other read waits for.
                .max_connections(settings.read_connections.max(1).saturating_add(1))
                .test_before_acquire(false)
                .connect_lazy_with(base_options(path).read_only(true));
            Ok(OpenDatabase { writer, readers, contents })
        }
        Err(error) => {
            // Close now: a dropped connection closes later, during the next attempt.
            close_as_marked(writer, path).await;
            Err(error)
        }
    }
}

/// Compares a database with its mark, migrates it, marks it as open, and reads its content.
async fn prepare(
    writer: &mut SqliteConnection,
    settings: &Settings,
    mark: Option<&Mark>,
) -> Result<Contents, OpenError> {
    let path = settings.path.clone();
    let failed = |error| OpenError::Database { path: path.clone(), error };
    let configuration = sqlx::raw_sql(AssertSqlSafe(configuration(settings)));
    configuration.execute(&mut *writer).await.map_err(failed)?;
    let found = read_identity(writer, &path).await?;
    let verdict = mark::compare(mark, found.as_ref());
    if let Verdict::Replaced(reason) = verdict {
        return Err(OpenError::Replaced { path, reason });
    }
    migrate(writer, &path).await?;
    if let (Verdict::LogMissing, Some(mark), Some(found)) = (verdict, mark, &found) {
        let next = epoch::next_epoch(found.epoch, found.revision, DEFAULT_REVISION_BUMP);
        let (epoch, revision) = next.ok_or_else(|| OpenError::Exhausted { path: path.clone() })?;
        tracing::error!(
            path = %path.display(),
            epoch,
            revision,
            state = if mark.log_damaged { "damaged" } else { "missing" },
            "write-ahead log of the last process is unusable, the last writes may be lost; starting a new epoch, `portico doctor` examines the database"
        );
        mark.with_epoch_start((epoch, revision)).write(&path)?;
        epoch::begin(writer, epoch, revision).await.map_err(failed)?;
    }
    let (identity, revision, compacted) = meta(writer).await.map_err(failed)?;
    // The directory entry of the log is made durable before the mark records that a log exists.
    sync_folder_of(&path).map_err(|error| OpenError::File { path: path.clone(), error })?;
    mark_of(&identity, revision, true).write(&path)?;
    let mut contents = Contents {
        identity,
        revision,
        compacted,
        resources: Vec::new(),
        reserved_ids: Vec::new(),
        unreadable_resources: Vec::new(),
    };
    contents.read_resources(writer).await.map_err(failed)?;
    Ok(contents)
}

/// Returns the mark for the current state of a database.
pub(crate) fn mark_of(identity: &Identity, revision: i64, open: bool) -> Mark {
    Mark::new(identity.store_id.clone(), identity.epoch, revision, open)
}

/// Returns the identity of a database; `None` if it is new.
pub(crate) async fn read_identity(
    connection: &mut SqliteConnection,
    path: &Path,
) -> Result<Option<DatabaseIdentity>, OpenError> {
    let failed = |error| OpenError::Database { path: path.to_owned(), error };
    if check_version(connection, path).await? == 0 {
        return Ok(None);
    }
    let select = sqlx::query("SELECT store_id, epoch, revision FROM meta WHERE id = 1");
    let Some(row) = select.fetch_optional(connection).await.map_err(failed)? else { return Ok(None) };
    let read = || {
        Ok(DatabaseIdentity { store_id: row.try_get(0)?, epoch: row.try_get(1)?, revision: row.try_get(2)? })
    };
    read().map_err(failed).map(Some)
}

/// Returns the options of every connection to a database file.
pub(super) fn file_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(path).busy_timeout(BUSY_TIMEOUT).disable_statement_logging()
}

/// Returns the options of connections of a store.
fn base_options(path: &Path) -> SqliteConnectOptions {
    // Buffer of rows from SQLite's thread: small sizes cause many switches between threads when a resource is loaded.
    file_options(path).pragma("temp_store", "memory").row_buffer_size(512)
}

/// Returns the options for reading a database that another process may serve. If it has no log, no process serves it, and it is
/// read as an immutable file. Otherwise SQLite would leave an empty log, and the next start would not notice that the log of a
/// killed process is missing.
pub(super) fn foreign_reader_options(path: &Path) -> SqliteConnectOptions {
    let has_no_log = !sibling(path, "-wal").exists();
    file_options(path).read_only(true).immutable(has_no_log)
}

/// Returns the pragmas of the writing connection. They read the database, which may fail, and are therefore not connect
/// options: if an option fails, the connection closes later, in the background.
fn configuration(settings: &Settings) -> String {
    // Incremental vacuum must be set before the first table is created. Objects are read from memory, so the page cache only
    // needs the inner pages of one index.
    // The sync mode must be set before anything is written.
    let mut pragmas = format!(
        "PRAGMA synchronous = {}; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; \
        PRAGMA cache_size = -512; {}",
        if settings.sync { "FULL" } else { "OFF" },
        space::pragmas(&settings.path, settings.max_file_bytes)
    );
    if settings.overwrite_deleted {
        pragmas.push_str("PRAGMA secure_delete = ON;");
    }
    pragmas
}

/// Returns the schema version of a database, 0 for a new one. Rejects versions that this program does not know.
async fn check_version(connection: &mut SqliteConnection, path: &Path) -> Result<i64, OpenError> {
    let known = MIGRATIONS.iter().map(|(version, ..)| *version).max().unwrap_or(0);
    let found = schema_version(connection).await;
    let found = found.map_err(|error| OpenError::Database { path: path.to_owned(), error })?;
    if found > known {
        return Err(OpenError::TooNew { path: path.to_owned(), found, known });
    }
    Ok(found)
}

/// Migrates a database to the schema of this program.
pub(crate) async fn migrate(writer: &mut SqliteConnection, path: &Path) -> Result<(), OpenError> {
    check_version(writer, path).await?;
    let migrations = MIGRATIONS.map(|(version, description, sql)| {
        Migration::new(version, description.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let migrator = Migrator::with_migrations(migrations.to_vec());
    let failed = |error| OpenError::Migration { path: path.to_owned(), error: Box::new(error) };
    // Same as `run`, whose future is not provably Send for a borrowed connection.
    migrator.run_direct(None, writer, false).await.map_err(failed)
}

/// Returns the column with the checksums of states: `NULL` for a file that was never served by a portico with checksums.
pub(super) async fn checksum_column(connection: &mut SqliteConnection) -> Result<&'static str, sqlx::Error> {
    const COLUMNS: &str = "SELECT count(*) FROM pragma_table_info('log') WHERE name = 'checksum'";
    let columns: i64 = sqlx::query_scalar(COLUMNS).fetch_one(connection).await?;
    Ok(if columns == 0 { "NULL" } else { "checksum" })
}

/// Returns the newest applied migration; 0 for a new file.
async fn schema_version(writer: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'";
    let tables: i64 = sqlx::query_scalar(tables).fetch_one(&mut *writer).await?;
    if tables == 0 {
        return Ok(0);
    }
    sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM _sqlx_migrations").fetch_one(writer).await
}

/// Returns identity, revision and compaction point. Creates the identity of a new store, whose first write has
/// revision 2 like upstream's.
async fn meta(writer: &mut SqliteConnection) -> Result<(Identity, i64, i64), sqlx::Error> {
    const SELECT: &str = "SELECT store_id, epoch, revision, compacted FROM meta WHERE id = 1";
    let row = match sqlx::query(SELECT).fetch_optional(&mut *writer).await? {
        Some(row) => row,
        None => {
            let insert = "INSERT INTO meta (id, store_id, epoch, revision, compacted) VALUES (1, ?, 1, 1, 0)";
            sqlx::query(insert).bind(uuid::Uuid::new_v4().to_string()).execute(&mut *writer).await?;
            sqlx::query(SELECT).fetch_one(&mut *writer).await?
        }
    };
    let identity = Identity { store_id: row.try_get(0)?, epoch: row.try_get(1)? };
    Ok((identity, row.try_get(2)?, row.try_get(3)?))
}

impl Contents {
    /// Reads all resources. A resource whose name cannot be read keeps its ID, and its objects are not served.
    async fn read_resources(&mut self, writer: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        for row in sqlx::query("SELECT id, api_group, resource FROM resource").fetch_all(&mut *writer).await?
        {
            let id: i64 = row.try_get(0)?;
            match row::resource(&row, 1)? {
                Ok(resource) => self.resources.push((id, resource)),
                Err(remains) => {
                    let objects = AssertSqlSafe(format!("SELECT count(*) FROM ({CURRENT})"));
                    let objects = sqlx::query_scalar(objects).bind(id).bind(i64::MAX);
                    let objects: i64 = objects.fetch_one(&mut *writer).await?;
                    tracing::error!(
                        resource = %remains,
                        id,
                        objects,
                        "cannot read the name of a stored resource, objects not served; `portico doctor` removes the objects"
                    );
                    self.reserved_ids.push(id);
                    self.unreadable_resources.push((remains, usize::try_from(objects).unwrap_or_default()));
                }
            }
        }
        Ok(())
    }
}

/// Closes the writing connection, which checkpoints the WAL into the file.
pub(crate) async fn close(writer: SqliteConnection) {
    if let Err(error) = writer.close().await {
        tracing::warn!(
            error = log_text(&error),
            "cannot close the database cleanly, the write-ahead log is replayed at the next start"
        );
    }
}

/// Closes the writing connection, but keeps the log if the mark records one: the next start would otherwise report lost writes.
pub(crate) async fn close_as_marked(writer: SqliteConnection, path: &Path) {
    match Mark::read(path) {
        Ok(None) => close(writer).await,
        Ok(Some(mark)) if !mark.open => close(writer).await,
        _ => close_keeping_log(writer, path).await,
    }
}

/// Closes the writing connection and leaves the log. The last connection that closes checkpoints the log,
/// which a read-only connection cannot do: so a reader closes after the writer.
pub(crate) async fn close_keeping_log(writer: SqliteConnection, path: &Path) {
    let reader = async {
        let mut reader = base_options(path).read_only(true).connect().await?;
        // A connection opens the database with its first statement.
        schema_version(&mut reader).await.map(|_| reader)
    };
    let reader = reader.await;
    close(writer).await;
    match reader {
        Ok(reader) => close(reader).await,
        // A database that cannot be read is not checkpointed either.
        Err(error) => {
            tracing::warn!(error = log_text(&error), "cannot read the database while closing")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_sync_mode_is_set_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        for (sync, level) in [(true, 2), (false, 0)] {
            let mut settings = Settings::new(folder.path().join(format!("{sync}.db")));
            settings.sync = sync;
            assert!(configuration(&settings).starts_with("PRAGMA synchronous = "));
            let (_lock, mut opened) = open(&settings).await.unwrap();
            let query = sqlx::query_scalar("PRAGMA synchronous");
            let found: i64 = query.fetch_one(&mut opened.writer).await.unwrap();
            assert_eq!(found, level);
            close(opened.writer).await;
        }
    }
}
