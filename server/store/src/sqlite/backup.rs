//! Backups: a copy of a database while it is written to, and a copy taken into service as a new epoch.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use super::mark::{Found, Mark, beside};
use super::open::{self, OpenError};
use super::{epoch, lock};

/// What was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackedUp {
    /// The store's id.
    pub store_id: String,
    /// Its epoch.
    pub epoch: i64,
    /// Everything up to this revision is in the copy, and nothing after it.
    pub revision: i64,
    /// The size of the copy.
    pub bytes: u64,
}

/// What was taken into service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The store's id, that of the copy.
    pub store_id: String,
    /// The new epoch.
    pub epoch: i64,
    /// The revision at which it begins.
    pub revision: i64,
    /// The database that was there before, if there was one.
    pub replaced: Option<PathBuf>,
}

/// Why nothing was backed up or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file is there already: backups overwrite nothing.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// There is no database, or no store in it.
    #[error("{} holds no store", .0.display())]
    NoStore(PathBuf),
    /// SQLite finds the copy damaged.
    #[error("{}: the copy is damaged: {found}", path.display())]
    Damaged {
        /// What was copied.
        path: PathBuf,
        /// The first thing that is wrong.
        found: String,
    },
    /// A database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A file cannot be made, moved or read.
    #[error("{}: {error}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// SQLite refused to copy.
    #[error("{}: {error}", path.display())]
    Database {
        /// Which database.
        path: PathBuf,
        /// Why.
        error: sqlx::Error,
    },
}

/// Copies a database into a new file, whether a process writes to it meanwhile or not: one read transaction, so the copy is
/// the state of one revision. The file appears once it is whole.
///
/// # Errors
/// [`BackupError`]; nothing is left behind then.
pub async fn backup(database: &Path, target: &Path) -> Result<BackedUp, BackupError> {
    let (database, target) = (&absolute(database)?, &absolute(target)?);
    if target.exists() {
        return Err(BackupError::Exists(target.to_owned()));
    }
    let partial = beside(target, &format!(".{}.partial", std::process::id()));
    let copied = async {
        copy(database, &partial).await?;
        let mut copy = connect(&partial, true).await?;
        let found = store_in(&mut copy, &partial).await;
        let sound = sound(&mut copy, database, "PRAGMA quick_check(1)").await;
        copy.close().await.map_err(|error| BackupError::Database { path: partial.clone(), error })?;
        sound.and(found)
    };
    let done = copied.await.and_then(|found| Ok((found, publish(&partial, target)?)));
    let (found, bytes) = done.inspect_err(|_| remove_quietly(&partial))?;
    Ok(BackedUp { store_id: found.store_id, epoch: found.epoch, revision: found.revision, bytes })
}

/// Takes a copy into service in the place of a database that nobody has open, as a new epoch whose revisions begin `bump`
/// past all that are known. The database that was there is kept beside it. The copy may be the database itself.
///
/// # Errors
/// [`BackupError`]. Until the copy is whole, and its state the beginning of an epoch, nothing is replaced.
pub async fn restore(source: &Path, database: &Path, bump: i64) -> Result<Restored, BackupError> {
    let (source, database) = (&absolute(source)?, &absolute(database)?);
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
    copy(source, &new).await?;
    let mut copied = connect(&new, false).await?;
    sound(&mut copied, source, "PRAGMA integrity_check(1)").await?;
    let found = store_in(&mut copied, &new).await?;
    open::migrate(&mut copied, &new).await?;
    let known =
        [mark.as_ref().map(|m| (m.epoch, m.revision)), before.as_ref().map(|b| (b.epoch, b.revision))];
    let known =
        known.into_iter().flatten().fold((found.epoch, found.revision), |a, b| (a.0.max(b.0), a.1.max(b.1)));
    let next = epoch::after(known.0, known.1, bump);
    let (epoch, revision) = next.ok_or_else(|| OpenError::Exhausted { path: database.to_owned() })?;
    let failed = |error| BackupError::Database { path: new.clone(), error };
    epoch::begin(&mut copied, epoch, revision).await.map_err(failed)?;
    copied.close().await.map_err(failed)?;
    // The mark comes first: whatever of the following a crash cuts off, what is there then is refused, not served.
    Mark { store_id: found.store_id.clone(), epoch, revision, open: false }.write(database)?;
    let before = before.map(|before| before.epoch);
    let replaced = set_aside(database, before)?;
    publish(&new, database)?;
    Ok(Restored { store_id: found.store_id, epoch, revision, replaced })
}

/// What a database says of itself, as far as it can be read.
async fn known(database: &Path) -> Option<Found> {
    let mut connection = connect(database, true).await.ok()?;
    let found = store_in(&mut connection, database).await.ok();
    // It was only read.
    let _ = connection.close().await;
    found
}

async fn store_in(connection: &mut SqliteConnection, path: &Path) -> Result<Found, BackupError> {
    let found = open::found(connection, path).await?;
    found.ok_or_else(|| BackupError::NoStore(path.to_owned()))
}

/// SQLite takes a name that begins with `file:` for a URI: an absolute one never does.
fn absolute(path: &Path) -> Result<PathBuf, BackupError> {
    std::path::absolute(path).map_err(|error| BackupError::File { path: path.to_owned(), error })
}

/// SQLite's own copy of everything that is committed, write-ahead log included.
async fn copy(from: &Path, to: &Path) -> Result<(), BackupError> {
    loop {
        let at_rest = !beside(from, "-wal").exists();
        copy_once(from, to).await?;
        // A server that started meanwhile may have changed the file below a reader that took it for at rest.
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
    // SQLite takes an empty file as it is, and would make one that others may read.
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    made.map_err(|error| BackupError::File { path: to.to_owned(), error })?;
    let failed = |error| BackupError::Database { path: from.to_owned(), error };
    let mut connection = connect(from, true).await?;
    store_in(&mut connection, from).await.inspect_err(|_| remove_quietly(to))?;
    let copied = sqlx::query("VACUUM INTO ?").bind(text).execute(&mut connection).await;
    let closed = connection.close().await;
    copied.map_err(failed).inspect_err(|_| remove_quietly(to))?;
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

async fn sound(
    connection: &mut SqliteConnection,
    path: &Path,
    pragma: &'static str,
) -> Result<(), BackupError> {
    let found: Result<String, _> = sqlx::query_scalar(pragma).fetch_one(connection).await;
    match found.map_err(|error| BackupError::Database { path: path.to_owned(), error })?.as_str() {
        "ok" => Ok(()),
        found => Err(BackupError::Damaged { path: path.to_owned(), found: found.to_owned() }),
    }
}

/// What a restore that was interrupted has left would be removed before it is read.
fn refuse_same(source: &Path, new: &Path) -> Result<(), BackupError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| BackupError::File { path, error }
    };
    if new.exists()
        && fs::canonicalize(source).map_err(failed(source))? == fs::canonicalize(new).map_err(failed(new))?
    {
        let text = "an interrupted restore has left it: restore the backup again, or give it another name";
        return Err(failed(source)(io::Error::other(text)));
    }
    Ok(())
}

/// Moves a database and its logs (write-ahead, or of an interrupted transaction), which belong to no other, out of the way.
fn set_aside(database: &Path, epoch: Option<i64>) -> Result<Option<PathBuf>, BackupError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| BackupError::File { path, error }
    };
    let epoch = epoch.map_or_else(|| "unknown".to_owned(), |epoch| epoch.to_string());
    let names = (1..).map(|n| match n {
        1 => beside(database, &format!(".epoch-{epoch}")),
        n => beside(database, &format!(".epoch-{epoch}.{n}")),
    });
    let aside = names.into_iter().find(|path| !path.exists());
    let empty = fs::metadata(database).map_err(failed(database))?.len() == 0;
    let kept = aside.filter(|_| !empty);
    // The logs go first: beside another database they would be taken for that one's.
    for suffix in ["-wal", "-journal"] {
        let log = beside(database, suffix);
        match &kept {
            Some(kept) if log.exists() => fs::rename(&log, beside(kept, suffix)).map_err(failed(&log))?,
            _ => remove(&log)?,
        }
    }
    remove(&beside(database, "-shm"))?;
    if let Some(kept) = &kept {
        fs::rename(database, kept).map_err(failed(database))?;
    }
    Ok(kept)
}

/// Gives a whole file its name; its size.
fn publish(partial: &Path, target: &Path) -> Result<u64, BackupError> {
    let failed = |error| BackupError::File { path: target.to_owned(), error };
    let file = File::open(partial).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    fs::rename(partial, target).map_err(failed)?;
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(bytes)
}

fn remove(path: &Path) -> Result<(), BackupError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(BackupError::File { path: path.to_owned(), error })
        }
        _ => Ok(()),
    }
}

/// Of what failed only the first error counts.
fn remove_quietly(path: &Path) {
    if let Err(error) = remove(path) {
        tracing::debug!(%error, "a partial copy stays");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_log_of_the_database_that_is_replaced_stays_beside_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("portico.db");
        for suffix in ["", "-wal", "-journal", "-shm"] {
            fs::write(beside(&database, suffix), suffix.len().to_string()).unwrap();
        }
        let kept = set_aside(&database, Some(1)).unwrap().unwrap();
        for suffix in ["", "-wal", "-journal"] {
            assert_eq!(fs::read(beside(&kept, suffix)).unwrap(), suffix.len().to_string().into_bytes());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
