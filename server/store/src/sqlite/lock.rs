//! Lock for one process per database file: an OS lock on a file next to it, which contains the process ID, and one on the
//! database itself, which covers other names of the same file.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portico_kit::platform::{DirBuilderExt, OpenOptionsExt};

use super::files;
use super::open_error::OpenError;

/// Lock of an open database. The operating system releases it when the process ends in any way.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
    /// Database file. Closing any handle of it releases the locks of SQLite on it in this process, so this handle
    /// is closed after SQLite's.
    pub(crate) database: Arc<File>,
}

impl Drop for FileLock {
    /// Unlocks explicitly: a forked process has the file open until it executes another program, so closing is not enough.
    fn drop(&mut self) {
        if let Err(error) = self.file.unlock().and_then(|()| unlock(&self.database)) {
            tracing::warn!(error = portico_gostd::os::error_text(&error), "cannot release the database lock");
        }
    }
}

impl FileLock {
    /// True if a path leads to the locked database. The folder of a served database may be moved and replaced.
    #[cfg(unix)]
    pub(crate) fn is_at(&self, database: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let id = |file: std::fs::Metadata| (file.dev(), file.ino());
        let (locked, found) = (self.database.metadata().map(id), std::fs::metadata(database).map(id));
        matches!((locked, found), (Ok(locked), Ok(found)) if locked == found)
    }

    /// Other systems do not allow moving the folder of an open file.
    #[cfg(not(unix))]
    pub(crate) fn is_at(&self, _: &Path) -> bool {
        true
    }
}

/// Creates the folder (0700) and the file (0600) if they are missing, and locks the database for this process.
pub(crate) fn acquire(database: &Path) -> Result<FileLock, OpenError> {
    if let Some(folder) = database.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let result = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        result.map_err(|error| OpenError::File { path: folder.to_owned(), error })?;
    }
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    let path = PathBuf::from(name);
    let failed = |error| OpenError::File { path: path.clone(), error };
    let mut file = private_options().open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // The process ID is optional: the database is in use even if the ID cannot be read.
            let _unreadable = file.read_to_string(&mut pid);
            let pid = if pid.trim().is_empty() { "?".to_owned() } else { pid.trim().to_owned() };
            return Err(OpenError::InUse { path: database.to_owned(), pid });
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    let opened =
        open_or_create(database).map_err(|error| OpenError::File { path: database.to_owned(), error })?;
    if !lock(&opened).map_err(|error| OpenError::File { path: database.to_owned(), error })? {
        return Err(OpenError::InUse { path: database.to_owned(), pid: "?".to_owned() });
    }
    files::match_owner(&file, database).map_err(failed)?;
    let noted = file.set_len(0).and_then(|()| file.rewind());
    // The disk may be full; the database can be opened nevertheless.
    if let Err(error) = noted.and_then(|()| writeln!(file, "{}", std::process::id())) {
        let error = portico_gostd::os::error_text(&error);
        tracing::warn!(path = %path.display(), error, "cannot write the process ID to the lock file");
    }
    Ok(FileLock { file, database: Arc::new(opened) })
}

/// Locks the database itself. Returns false if another process has locked it under another name.
#[cfg(target_os = "linux")]
fn lock(database: &File) -> std::io::Result<bool> {
    match database.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        // Some file systems do not support these locks.
        Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(target_os = "linux")]
fn unlock(database: &File) -> std::io::Result<()> {
    database.unlock()
}

/// Takes no lock: on other systems it would conflict with the locks of SQLite on the same file in this process.
#[cfg(not(target_os = "linux"))]
fn lock(_: &File) -> std::io::Result<bool> {
    Ok(true)
}

#[cfg(not(target_os = "linux"))]
fn unlock(_: &File) -> std::io::Result<()> {
    Ok(())
}

/// Opens or creates the database file. SQLite would create it with the permissions of the umask, which its WAL would inherit.
fn open_or_create(database: &Path) -> std::io::Result<File> {
    match private_options().create_new(true).open(database) {
        Ok(made) => files::match_owner(&made, files::folder_of(database)).map(|()| made),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => private_options().open(database),
        Err(error) => Err(error),
    }
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options
}
