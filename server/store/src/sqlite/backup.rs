//! Restores a copy of a database file as a new epoch.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use portico_kit::platform::{OpenOptionsExt, file_id};
use sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use super::failure::reason;
use super::mark::{DatabaseIdentity, Mark, sibling};
use super::open;
use super::open_error::OpenError;
use super::{epoch, files, lock};
use portico_gostd::os::error_text;

/// Result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredDatabase {
    /// ID of the store, as in the copy.
    pub store_id: String,
    /// New epoch.
    pub epoch: i64,
    /// First revision of the epoch.
    pub revision: i64,
    /// Path of the replaced database, if there was one.
    pub replaced: Option<PathBuf>,
}

/// Error of a restore.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file has no database, or no store in it.
    #[error("no store found in {}", .0.display())]
    NoStore(PathBuf),
    /// SQLite reports that the copy is damaged.
    #[error("{}: the copy is damaged: {found}", path.display())]
    Damaged {
        /// Path of the copy.
        path: PathBuf,
        /// First problem found.
        found: String,
    },
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A file cannot be created, renamed or read.
    #[error("{}: {}", path.display(), error_text(error))]
    File {
        /// Path of the file.
        path: PathBuf,
        error: io::Error,
    },
    /// SQLite cannot copy the database.
    #[error("{}: {}", path.display(), reason(error))]
    Database {
        /// Path of the database.
        path: PathBuf,
        error: sqlx::Error,
    },
}

/// Replaces a database that is not in use by a copy, as a new epoch that begins `bump` revisions after all known ones. The
/// previous database stays next to it. The copy may be the database itself.
///
/// # Errors
/// [`BackupError`]. Nothing is replaced, and no files remain, until the copy is complete and its state is the start of an
/// epoch. After that the database cannot be opened until a restore has finished.
pub async fn restore(source: &Path, database: &Path, bump: i64) -> Result<RestoredDatabase, BackupError> {
    let (source, database) = (&files::resolve(&absolute(source)?), &files::resolve(&absolute(database)?));
    if !source.exists() {
        return Err(BackupError::NoStore(source.to_owned()));
    }
    let _lock = lock::acquire(database)?;
    let mark = Mark::read(database)?;
    let existing = read_identity(database).await;
    let new = sibling(database, ".restoring");
    check_source_is_not_leftover(source, &new)?;
    remove(&new)?;
    remove(&sibling(&new, "-journal"))?;
    let prepared = async {
        copy(source, &new).await?;
        copy_owner(&new, database)?;
        let known_positions =
            [mark.as_ref().map(position_of_mark), existing.as_ref().map(position_of_database)];
        let next = begin_epoch(&new, source, database, &known_positions, bump).await?;
        // The mark is written first, so that a database left by a crash during the next steps is rejected and not served.
        next.write(database)?;
        Ok(next)
    };
    let prepared: Result<Mark, BackupError> = prepared.await;
    let Mark { store_id, epoch, revision, .. } = prepared.inspect_err(|_| remove_copy(&new))?;
    let replaced = replace_database(&new, database, existing.map(|existing| existing.epoch)).await?;
    Ok(RestoredDatabase { store_id, epoch, revision, replaced })
}

/// Begins an epoch with the state of a copy, after all known revisions. Returns the mark of the new database.
async fn begin_epoch(
    new: &Path,
    source: &Path,
    database: &Path,
    known_positions: &[Option<(i64, i64)>],
    bump: i64,
) -> Result<Mark, BackupError> {
    let mut copied = connect(new, false).await?;
    let begin = async {
        check_integrity(&mut copied, source).await?;
        let found = require_identity(&mut copied, new).await?;
        open::migrate(&mut copied, new).await?;
        let position = (found.epoch, found.revision);
        let newest = known_positions.iter().flatten().fold(position, |a, b| (a.0.max(b.0), a.1.max(b.1)));
        let next = epoch::next_epoch(newest.0, newest.1, bump);
        let (epoch, revision) = next.ok_or_else(|| OpenError::Exhausted { path: database.to_owned() })?;
        let result = epoch::begin(&mut copied, epoch, revision).await;
        result.map_err(|error| BackupError::Database { path: new.to_owned(), error })?;
        Ok(Mark::new(found.store_id, epoch, revision, false))
    };
    let result: Result<Mark, BackupError> = begin.await;
    // Close the database before its file is removed or renamed.
    let closed = copied.close().await;
    let mark = result?;
    closed.map_err(|error| BackupError::Database { path: new.to_owned(), error })?;
    Ok(mark)
}

fn position_of_mark(mark: &Mark) -> (i64, i64) {
    (mark.epoch, mark.revision)
}

fn position_of_database(found: &DatabaseIdentity) -> (i64, i64) {
    (found.epoch, found.revision)
}

/// Returns the identity of a database, if it can be read.
pub(super) async fn read_identity(database: &Path) -> Option<DatabaseIdentity> {
    let mut connection = connect(database, true).await.ok()?;
    let found = require_identity(&mut connection, database).await.ok();
    // The connection only read, so errors of closing do not matter.
    let _ = connection.close().await;
    found
}

async fn require_identity(
    connection: &mut SqliteConnection,
    path: &Path,
) -> Result<DatabaseIdentity, BackupError> {
    let found = open::read_identity(connection, path).await?;
    found.ok_or_else(|| BackupError::NoStore(path.to_owned()))
}

/// Returns the absolute path: SQLite interprets a name that begins with `file:` as a URI.
fn absolute(path: &Path) -> Result<PathBuf, BackupError> {
    std::path::absolute(path).map_err(|error| BackupError::File { path: path.to_owned(), error })
}

/// Creates SQLite's own copy of all committed data, including the write-ahead log. After an error the
/// caller removes partial files.
async fn copy(from: &Path, to: &Path) -> Result<(), BackupError> {
    loop {
        let has_no_log = !sibling(from, "-wal").exists();
        copy_once(from, to).await?;
        // A server that started in the meantime may have changed the file during the read without a log.
        if !has_no_log || !sibling(from, "-wal").exists() {
            return Ok(());
        }
        remove(to)?;
    }
}

async fn copy_once(from: &Path, to: &Path) -> Result<(), BackupError> {
    if !from.exists() {
        return Err(BackupError::NoStore(from.to_owned()));
    }
    let not_text = || io::Error::new(io::ErrorKind::InvalidInput, "the name is not UTF-8");
    let text = to.to_str().ok_or_else(|| BackupError::File { path: to.to_owned(), error: not_text() })?;
    // SQLite accepts an empty file, and would create one with permissions for other users.
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    created.map_err(|error| BackupError::File { path: to.to_owned(), error })?;
    let failed = |error| BackupError::Database { path: from.to_owned(), error };
    let mut connection = connect(from, true).await?;
    let copied = async {
        require_identity(&mut connection, from).await?;
        sqlx::query("VACUUM INTO ?").bind(text).execute(&mut connection).await.map_err(failed)
    };
    let copied = copied.await;
    let closed = connection.close().await;
    copied?;
    closed.map_err(failed)
}

async fn connect(path: &Path, read_only: bool) -> Result<SqliteConnection, BackupError> {
    let options = if read_only {
        open::foreign_reader_options(path)
    } else {
        let options = open::file_options(path);
        options.journal_mode(SqliteJournalMode::Delete).synchronous(SqliteSynchronous::Full)
    };
    options.connect().await.map_err(|error| BackupError::Database { path: path.to_owned(), error })
}

async fn check_integrity(connection: &mut SqliteConnection, path: &Path) -> Result<(), BackupError> {
    let check = sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(connection);
    let found: Result<String, _> = check.await;
    match found.map_err(|error| BackupError::Database { path: path.to_owned(), error })?.as_str() {
        "ok" => Ok(()),
        found => Err(BackupError::Damaged { path: path.to_owned(), found: found.to_owned() }),
    }
}

/// Rejects a source that the cleanup of an interrupted restore would delete before it is read.
fn check_source_is_not_leftover(source: &Path, new: &Path) -> Result<(), BackupError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| BackupError::File { path, error }
    };
    if new.exists()
        && fs::canonicalize(source).map_err(failed(source))? == fs::canonicalize(new).map_err(failed(new))?
    {
        let text = "left by an interrupted restore: restore the backup again, or rename the file";
        return Err(failed(source)(io::Error::other(text)));
    }
    Ok(())
}

/// Replaces a database by a new one. The previous one is saved if it has content. `epoch` is that of a readable previous
/// database: its name passes to the new one in one step, so that a complete database exists at any time, and an interrupted
/// restore can be repeated, also in place.
pub(super) async fn replace_database(
    new: &Path,
    database: &Path,
    epoch: Option<i64>,
) -> Result<Option<PathBuf>, BackupError> {
    let saved_to = match epoch {
        Some(epoch) => {
            checkpoint_into_file(database).await?;
            Some(save_previous(database, epoch)?)
        }
        None => rename_unreadable(database)?,
    };
    remove(&sibling(database, "-shm"))?;
    replace_file(new, database)?;
    Ok(saved_to)
}

/// Checkpoints the log of a database into its file, or rolls back an interrupted transaction.
async fn checkpoint_into_file(database: &Path) -> Result<(), BackupError> {
    let find_log =
        || ["-wal", "-journal"].map(|suffix| sibling(database, suffix)).into_iter().find(|log| log.exists());
    if find_log().is_none() {
        return Ok(());
    }
    let failed = |error| BackupError::Database { path: database.to_owned(), error };
    let mut connection = open::file_options(database).connect().await.map_err(failed)?;
    let read = sqlx::query("SELECT count(*) FROM sqlite_schema").fetch_one(&mut connection).await;
    let moved = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_all(&mut connection).await;
    connection.close().await.map_err(failed)?;
    read.and(moved).map_err(failed)?;
    match find_log() {
        None => Ok(()),
        Some(path) => {
            let error = io::Error::other(
                "cannot checkpoint into the database: another program has the database open",
            );
            Err(BackupError::File { path, error })
        }
    }
}

/// Adds a second name for a database, under which it is saved.
fn save_previous(database: &Path, epoch: i64) -> Result<PathBuf, BackupError> {
    let failed = |error| BackupError::File { path: database.to_owned(), error };
    let database_id = file_id(database).map_err(failed)?;
    let is_same_file = |path: &Path| file_id(path).is_ok_and(|file| file == database_id);
    let saved_to = unused_name(database, &epoch.to_string(), is_same_file);
    if !is_same_file(&saved_to) && fs::hard_link(database, &saved_to).is_err() {
        // Some file systems have no hard links. The database is then missing from its path for a moment, but not lost.
        fs::rename(database, &saved_to).map_err(failed)?;
    }
    sync_folder(database)?;
    Ok(saved_to)
}

/// Returns a name for a saved database that no database or log has yet, or one that this database already has.
fn unused_name(database: &Path, epoch: &str, is_same_file: impl Fn(&Path) -> bool) -> PathBuf {
    let is_unused =
        |path: &Path| ["", "-wal", "-journal"].iter().all(|suffix| !sibling(path, suffix).exists());
    let mut candidate = sibling(database, &format!(".epoch-{epoch}"));
    let mut n = 1_u64;
    while !is_unused(&candidate) && !is_same_file(&candidate) {
        n += 1;
        candidate = sibling(database, &format!(".epoch-{epoch}.{n}"));
    }
    candidate
}

/// Renames an unreadable database and its logs (write-ahead, or of an interrupted transaction), which belong
/// to no other database.
fn rename_unreadable(database: &Path) -> Result<Option<PathBuf>, BackupError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| BackupError::File { path, error }
    };
    let empty = fs::metadata(database).map_err(failed(database))?.len() == 0;
    let saved_to = (!empty).then(|| unused_name(database, "unknown", |_| false));
    // The logs are renamed first: next to another database SQLite would apply them to it.
    for suffix in ["-wal", "-journal"] {
        let log = sibling(database, suffix);
        match &saved_to {
            Some(saved_to) if log.exists() => {
                fs::rename(&log, sibling(saved_to, suffix)).map_err(failed(&log))?
            }
            _ => remove(&log)?,
        }
    }
    if let Some(saved_to) = &saved_to {
        fs::rename(database, saved_to).map_err(failed(database))?;
    }
    Ok(saved_to)
}

/// Gives a copy created by root to the owner of the database that it replaces.
pub(super) fn copy_owner(new: &Path, database: &Path) -> Result<(), BackupError> {
    let result = File::open(new).and_then(|file| files::match_owner(&file, database));
    result.map_err(|error| BackupError::File { path: new.to_owned(), error })
}

/// Renames a complete file over another one atomically.
fn replace_file(new: &Path, target: &Path) -> Result<(), BackupError> {
    let failed = |error| BackupError::File { path: target.to_owned(), error };
    File::open(new).and_then(|file| file.sync_all()).map_err(failed)?;
    fs::rename(new, target).map_err(failed)?;
    sync_folder(target)
}

fn sync_folder(path: &Path) -> Result<(), BackupError> {
    let synced = File::open(files::folder_of(path)).and_then(|folder| folder.sync_all());
    synced.map_err(|error| BackupError::File { path: path.to_owned(), error })
}

pub(super) fn remove(path: &Path) -> Result<(), BackupError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(BackupError::File { path: path.to_owned(), error })
        }
        _ => Ok(()),
    }
}

/// Removes an incomplete copy and its SQLite journal. Logs errors.
pub(super) fn remove_copy(path: &Path) {
    for file in [path.to_owned(), sibling(path, "-journal")] {
        if let Err(error) = remove(&file) {
            tracing::warn!(%error, "cannot remove a partial copy");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_log_of_a_replaced_database_stays_next_to_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("portico.db");
        for suffix in ["", "-wal", "-journal"] {
            fs::write(sibling(&database, suffix), format!("is {suffix}")).unwrap();
        }
        // The log of another saved database must not be assigned to this one.
        fs::write(sibling(&database, ".epoch-unknown-wal"), "another").unwrap();
        let saved_to = rename_unreadable(&database).unwrap().unwrap();
        assert!(saved_to.ends_with("portico.db.epoch-unknown.2"), "{}", saved_to.display());
        for suffix in ["", "-wal", "-journal"] {
            assert_eq!(fs::read_to_string(sibling(&saved_to, suffix)).unwrap(), format!("is {suffix}"));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }

    /// Returns a store whose process was killed: a database, a log that was not checkpointed, and a mark.
    async fn create_killed_store(folder: &Path) -> PathBuf {
        let served = folder.join("served/portico.db");
        let settings = crate::Settings::new(&served);
        let (_lock, mut opened) = open::open(&settings).await.unwrap();
        let write = "INSERT INTO resource (id, api_group, resource) VALUES (1, '', 'configmaps')";
        sqlx::query(write).execute(&mut opened.writer).await.unwrap();
        let killed = folder.join("killed");
        fs::create_dir(&killed).unwrap();
        for suffix in ["", "-wal", ".mark"] {
            let file = sibling(&killed.join("portico.db"), suffix);
            fs::copy(sibling(&served, suffix), file).unwrap();
        }
        open::close(opened.writer).await;
        assert!(fs::metadata(killed.join("portico.db-wal")).unwrap().len() > 0);
        killed.join("portico.db")
    }

    #[tokio::test]
    async fn an_interrupted_restore_in_place_can_be_repeated_without_loss() {
        // Number of completed steps: the mark, the checkpoint of the log, the second name.
        for steps in 1..=3 {
            let folder = tempfile::tempdir().unwrap();
            let database = create_killed_store(folder.path()).await;
            let found = read_identity(&database).await.unwrap();
            let mark = Mark::new(found.store_id, found.epoch + 1, 500, false);
            mark.write(&database).unwrap();
            if steps > 1 {
                checkpoint_into_file(&database).await.unwrap();
            }
            if steps > 2 {
                save_previous(&database, found.epoch).unwrap();
            }
            let refused = open::open(&crate::Settings::new(&database)).await;
            assert!(matches!(refused, Err(OpenError::Replaced { .. })), "{steps}");
            let restored = restore(&database, &database, 10).await.unwrap();
            assert_eq!((restored.epoch, restored.revision), (3, 510), "{steps}");
            let saved_to = restored.replaced.unwrap();
            assert!(saved_to.ends_with("portico.db.epoch-1"), "{}", saved_to.display());
            for file in [&database, &saved_to] {
                let mut connection = connect(file, true).await.unwrap();
                let count = sqlx::query_scalar("SELECT count(*) FROM resource").fetch_one(&mut connection);
                let count: i64 = count.await.unwrap();
                assert_eq!(count, 1, "{steps} {}", file.display());
                connection.close().await.unwrap();
            }
        }
    }
}
