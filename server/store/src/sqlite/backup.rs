//! Restores a copy of a database file as a new epoch.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use portico_kit::platform::{OpenOptionsExt, file_id};
use sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use super::failure::reason;
use super::mark::{Found, Mark, beside};
use super::open;
use super::open_error::OpenError;
use super::{epoch, files, lock};
use portico_gostd::os::error_text;

/// Result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
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
pub async fn restore(source: &Path, database: &Path, bump: i64) -> Result<Restored, BackupError> {
    let (source, database) = (&files::resolve(&absolute(source)?), &files::resolve(&absolute(database)?));
    if !source.exists() {
        return Err(BackupError::NoStore(source.to_owned()));
    }
    let _lock = lock::acquire(database)?;
    let mark = Mark::read(database)?;
    let before = known(database).await;
    let new = beside(database, ".restoring");
    refuse_same(source, &new)?;
    remove(&new)?;
    remove(&beside(&new, "-journal"))?;
    let prepared = async {
        copy(source, &new).await?;
        own(&new, database)?;
        let known = [mark.as_ref().map(of_mark), before.as_ref().map(of_found)];
        let next = begin_epoch(&new, source, database, &known, bump).await?;
        // The mark is written first, so that a database left by a crash during the next steps is rejected and not served.
        next.write(database)?;
        Ok(next)
    };
    let prepared: Result<Mark, BackupError> = prepared.await;
    let Mark { store_id, epoch, revision, .. } = prepared.inspect_err(|_| remove_copy(&new))?;
    let replaced = exchange(&new, database, before.map(|before| before.epoch)).await?;
    Ok(Restored { store_id, epoch, revision, replaced })
}

/// Begins an epoch with the state of a copy, after all known revisions. Returns the mark of the new database.
async fn begin_epoch(
    new: &Path,
    source: &Path,
    database: &Path,
    known: &[Option<(i64, i64)>],
    bump: i64,
) -> Result<Mark, BackupError> {
    let mut copied = connect(new, false).await?;
    let begun = async {
        sound(&mut copied, source).await?;
        let found = store_in(&mut copied, new).await?;
        open::migrate(&mut copied, new).await?;
        let own = (found.epoch, found.revision);
        let known = known.iter().flatten().fold(own, |a, b| (a.0.max(b.0), a.1.max(b.1)));
        let next = epoch::after(known.0, known.1, bump);
        let (epoch, revision) = next.ok_or_else(|| OpenError::Exhausted { path: database.to_owned() })?;
        let done = epoch::begin(&mut copied, epoch, revision).await;
        done.map_err(|error| BackupError::Database { path: new.to_owned(), error })?;
        Ok(Mark::new(found.store_id, epoch, revision, false))
    };
    let begun: Result<Mark, BackupError> = begun.await;
    // Close the database before its file is removed or renamed.
    let closed = copied.close().await;
    let mark = begun?;
    closed.map_err(|error| BackupError::Database { path: new.to_owned(), error })?;
    Ok(mark)
}

fn of_mark(mark: &Mark) -> (i64, i64) {
    (mark.epoch, mark.revision)
}

fn of_found(found: &Found) -> (i64, i64) {
    (found.epoch, found.revision)
}

/// Returns the identity of a database, if it can be read.
pub(super) async fn known(database: &Path) -> Option<Found> {
    let mut connection = connect(database, true).await.ok()?;
    let found = store_in(&mut connection, database).await.ok();
    // The connection only read, so errors of closing do not matter.
    let _ = connection.close().await;
    found
}

async fn store_in(connection: &mut SqliteConnection, path: &Path) -> Result<Found, BackupError> {
    let found = open::found(connection, path).await?;
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
        let at_rest = !beside(from, "-wal").exists();
        copy_once(from, to).await?;
        // A server that started in the meantime may have changed the file during the read without a log.
        if !at_rest || !beside(from, "-wal").exists() {
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
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    made.map_err(|error| BackupError::File { path: to.to_owned(), error })?;
    let failed = |error| BackupError::Database { path: from.to_owned(), error };
    let mut connection = connect(from, true).await?;
    let copied = async {
        store_in(&mut connection, from).await?;
        sqlx::query("VACUUM INTO ?").bind(text).execute(&mut connection).await.map_err(failed)
    };
    let copied = copied.await;
    let closed = connection.close().await;
    copied?;
    closed.map_err(failed)
}

async fn connect(path: &Path, read_only: bool) -> Result<SqliteConnection, BackupError> {
    let options = if read_only {
        open::onlooker_options(path)
    } else {
        let options = open::file_options(path);
        options.journal_mode(SqliteJournalMode::Delete).synchronous(SqliteSynchronous::Full)
    };
    options.connect().await.map_err(|error| BackupError::Database { path: path.to_owned(), error })
}

async fn sound(connection: &mut SqliteConnection, path: &Path) -> Result<(), BackupError> {
    let check = sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(connection);
    let found: Result<String, _> = check.await;
    match found.map_err(|error| BackupError::Database { path: path.to_owned(), error })?.as_str() {
        "ok" => Ok(()),
        found => Err(BackupError::Damaged { path: path.to_owned(), found: found.to_owned() }),
    }
}

/// Rejects a source that the cleanup of an interrupted restore would delete before it is read.
fn refuse_same(source: &Path, new: &Path) -> Result<(), BackupError> {
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
pub(super) async fn exchange(
    new: &Path,
    database: &Path,
    epoch: Option<i64>,
) -> Result<Option<PathBuf>, BackupError> {
    let kept = match epoch {
        Some(epoch) => {
            fold(database).await?;
            Some(keep(database, epoch)?)
        }
        None => set_aside(database)?,
    };
    remove(&beside(database, "-shm"))?;
    replace(new, database)?;
    Ok(kept)
}

/// Checkpoints the log of a database into its file, or rolls back an interrupted transaction.
async fn fold(database: &Path) -> Result<(), BackupError> {
    let logs =
        || ["-wal", "-journal"].map(|suffix| beside(database, suffix)).into_iter().find(|log| log.exists());
    if logs().is_none() {
        return Ok(());
    }
    let failed = |error| BackupError::Database { path: database.to_owned(), error };
    let mut connection = open::file_options(database).connect().await.map_err(failed)?;
    let read = sqlx::query("SELECT count(*) FROM sqlite_schema").fetch_one(&mut connection).await;
    let moved = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_all(&mut connection).await;
    connection.close().await.map_err(failed)?;
    read.and(moved).map_err(failed)?;
    match logs() {
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
fn keep(database: &Path, epoch: i64) -> Result<PathBuf, BackupError> {
    let failed = |error| BackupError::File { path: database.to_owned(), error };
    let there = file_id(database).map_err(failed)?;
    let same = |path: &Path| file_id(path).is_ok_and(|file| file == there);
    let kept = unused(database, &epoch.to_string(), same);
    if !same(&kept) && fs::hard_link(database, &kept).is_err() {
        // Some file systems have no hard links. The database is then missing from its path for a moment, but not lost.
        fs::rename(database, &kept).map_err(failed)?;
    }
    sync_folder(database)?;
    Ok(kept)
}

/// Returns a name for a saved database that no database or log has yet, or one that this database already has.
fn unused(database: &Path, epoch: &str, same: impl Fn(&Path) -> bool) -> PathBuf {
    let free = |path: &Path| ["", "-wal", "-journal"].iter().all(|suffix| !beside(path, suffix).exists());
    let mut kept = beside(database, &format!(".epoch-{epoch}"));
    let mut n = 1_u64;
    while !free(&kept) && !same(&kept) {
        n += 1;
        kept = beside(database, &format!(".epoch-{epoch}.{n}"));
    }
    kept
}

/// Renames an unreadable database and its logs (write-ahead, or of an interrupted transaction), which belong
/// to no other database.
fn set_aside(database: &Path) -> Result<Option<PathBuf>, BackupError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| BackupError::File { path, error }
    };
    let empty = fs::metadata(database).map_err(failed(database))?.len() == 0;
    let kept = (!empty).then(|| unused(database, "unknown", |_| false));
    // The logs are renamed first: next to another database SQLite would apply them to it.
    for suffix in ["-wal", "-journal"] {
        let log = beside(database, suffix);
        match &kept {
            Some(kept) if log.exists() => fs::rename(&log, beside(kept, suffix)).map_err(failed(&log))?,
            _ => remove(&log)?,
        }
    }
    if let Some(kept) = &kept {
        fs::rename(database, kept).map_err(failed(database))?;
    }
    Ok(kept)
}

/// Gives a copy created by root to the owner of the database that it replaces.
pub(super) fn own(new: &Path, database: &Path) -> Result<(), BackupError> {
    let given = File::open(new).and_then(|file| files::give(&file, database));
    given.map_err(|error| BackupError::File { path: new.to_owned(), error })
}

/// Renames a complete file over another one atomically.
fn replace(new: &Path, target: &Path) -> Result<(), BackupError> {
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
    for file in [path.to_owned(), beside(path, "-journal")] {
        if let Err(error) = remove(&file) {
            tracing::warn!(%error, "cannot remove a partial copy");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_log_of_the_database_that_is_replaced_stays_beside_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("portico.db");
        for suffix in ["", "-wal", "-journal"] {
            fs::write(beside(&database, suffix), format!("is {suffix}")).unwrap();
        }
        // The log of another saved database must not be assigned to this one.
        fs::write(beside(&database, ".epoch-unknown-wal"), "another").unwrap();
        let kept = set_aside(&database).unwrap().unwrap();
        assert!(kept.ends_with("portico.db.epoch-unknown.2"), "{}", kept.display());
        for suffix in ["", "-wal", "-journal"] {
            assert_eq!(fs::read_to_string(beside(&kept, suffix)).unwrap(), format!("is {suffix}"));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }

    /// Returns a store whose process was killed: a database, a log that was not checkpointed, and a mark.
    async fn killed(folder: &Path) -> PathBuf {
        let served = folder.join("served/portico.db");
        let settings = crate::Settings::new(&served);
        let (_lock, mut opened) = open::open(&settings).await.unwrap();
        let write = "INSERT INTO resource (id, api_group, resource) VALUES (1, '', 'configmaps')";
        sqlx::query(write).execute(&mut opened.writer).await.unwrap();
        let killed = folder.join("killed");
        fs::create_dir(&killed).unwrap();
        for suffix in ["", "-wal", ".mark"] {
            let file = beside(&killed.join("portico.db"), suffix);
            fs::copy(beside(&served, suffix), file).unwrap();
        }
        open::close(opened.writer).await;
        assert!(fs::metadata(killed.join("portico.db-wal")).unwrap().len() > 0);
        killed.join("portico.db")
    }

    #[tokio::test]
    async fn a_restore_in_place_that_is_killed_while_it_replaces_is_repeated_and_loses_nothing() {
        // Number of completed steps: the mark, the checkpoint of the log, the second name.
        for steps in 1..=3 {
            let folder = tempfile::tempdir().unwrap();
            let database = killed(folder.path()).await;
            let found = known(&database).await.unwrap();
            let mark = Mark::new(found.store_id, found.epoch + 1, 500, false);
            mark.write(&database).unwrap();
            if steps > 1 {
                fold(&database).await.unwrap();
            }
            if steps > 2 {
                keep(&database, found.epoch).unwrap();
            }
            let refused = open::open(&crate::Settings::new(&database)).await;
            assert!(matches!(refused, Err(OpenError::Replaced { .. })), "{steps}");
            let restored = restore(&database, &database, 10).await.unwrap();
            assert_eq!((restored.epoch, restored.revision), (3, 510), "{steps}");
            let kept = restored.replaced.unwrap();
            assert!(kept.ends_with("portico.db.epoch-1"), "{}", kept.display());
            for file in [&database, &kept] {
                let mut there = connect(file, true).await.unwrap();
                let count = sqlx::query_scalar("SELECT count(*) FROM resource").fetch_one(&mut there);
                let count: i64 = count.await.unwrap();
                assert_eq!(count, 1, "{steps} {}", file.display());
                there.close().await.unwrap();
            }
        }
    }
}
