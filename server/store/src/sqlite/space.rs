//! Disk space for deletions when the disk is full, or the size limit of the database is reached.
//!
//! An open database owns the disk blocks that deletions need: the write-ahead log those of a group, and the database file those
//! of all pages that a checkpoint copies to it, because it is extended before a group is written. Other files that fill the
//! disk cannot take these blocks. While the database is closed and has no log, a file of zeros next to it (the reserve) owns as
//! many; while it is open, the reserve owns those that the next start needs after a kill.
//!
//! If no more blocks are available, the store is in delete-only mode: it writes only deletions, without history,
//! until there is space.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use sqlx::{AssertSqlSafe, Row, SqliteConnection};
use tokio::sync::watch;

use super::allocation::{Disk, extend, write_zeros};
use super::failure::{NO_SPACE, is_no_space, log_text};
use super::files;
use super::mark::sibling;
use super::wal::{FRAME_BYTES, HEADER_BYTES, PAGE_BYTES};
use crate::txn::{Change, Operation, Precondition, Txn};

/// Denominator of the part of the size limit that must be free to leave delete-only mode.
const SPARE_DIVISOR: u64 = 8;
/// Denominator of the maximum part of the file system for the reserve.
const MAX_RESERVE_DIVISOR: u64 = 4;
/// Denominator of the maximum part of the file system for the write-ahead log before a checkpoint.
const LOG_DIVISOR: u64 = 8;
/// Pages of the write-ahead log before a checkpoint, on a large disk.
const LOG_PAGES: u64 = 4_000;
/// Size that the write-ahead log keeps when it restarts, while there is space.
const LOG_KEPT_BYTES: u64 = 64 << 20;
/// Denominator of the part of the reserve by which the database file is extended beyond the needs of a group.
const SLACK_DIVISOR: u64 = 4;
/// Denominator of the part of the reserve that must stay free on the disk when the database file is extended.
const MARGIN_DIVISOR: u64 = 8;
/// Pages that an operation may add to the database, without those of its value.
const OPERATION_PAGES: u64 = 1;
/// Denominator of the part of the reserve that the values of a group may use in delete-only mode.
const GROUP_DIVISOR: u64 = 4;
/// Denominator of the part of the reserve whose pages one step releases; moving a page writes up to three others.
const VACUUM_DIVISOR: u64 = 8;
/// Size in the write-ahead log of an operation that deletes, without its value.
const DELETION_BYTES: u64 = 64 * 1024;
/// Size of the reserve while the database is open: for the index of the log, which the next start may have to create.
const INDEX_BYTES: u64 = 64 * 1024;
/// Bytes written to test for free space: more than SQLite adds to a file at once.
const PROBE_BYTES: usize = 64 * 1024;
/// Number of pages of a database whose pages were not counted.
const UNCOUNTED: u64 = u64::MAX / 2;
/// Interval of attempts to leave delete-only mode.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Disk space of an open database.
pub(crate) struct Space {
    path: PathBuf,
    /// Database file, while it is locked.
    database: Weak<File>,
    /// Size of the reserve in bytes.
    reserve_bytes: u64,
    max_pages: Option<u64>,
    /// Upper bound of the pages of the database, including those in the write-ahead log.
    pages: AtomicU64,
    /// Reason for delete-only mode; `None` in normal mode.
    delete_only_reason: watch::Sender<Option<String>>,
}

impl Space {
    /// Creates the space of a database that was just opened. Allocates the blocks of the write-ahead log; if that fails, or the
    /// disk is full, the store starts in delete-only mode. Blocks.
    pub(crate) fn new(path: &Path, database: &Arc<File>, bytes: u64, max_file_bytes: Option<u64>) -> Self {
        let space = Self {
            path: path.to_owned(),
            database: Arc::downgrade(database),
            reserve_bytes: limit_reserve(path, bytes),
            max_pages: max_file_bytes.map(max_pages),
            pages: AtomicU64::new(UNCOUNTED),
            delete_only_reason: watch::Sender::new(None),
        };
        let allocated = space.allocate_log();
        if Disk::of(path).is_none_or(|disk| disk.available > space.reserve_bytes) {
            space.reserve_index();
        }
        let available = Disk::of(path).map_or(u64::MAX, |disk| disk.available);
        if allocated.as_ref().is_err_and(is_no_space) || available < space.reserve_bytes / MARGIN_DIVISOR {
            tracing::error!("disk is full, accepting only deletions until space is available");
            space.delete_only_reason.send_replace(Some(NO_SPACE.to_owned()));
        } else if let Err(error) = allocated {
            let error = portico_gostd::os::error_text(&error);
            tracing::warn!(error, "cannot reserve disk space for deletions");
        }
        space
    }

    /// Returns the reason for delete-only mode; `None` in normal mode.
    pub(crate) fn delete_only_reason(&self) -> Option<String> {
        self.delete_only_reason.borrow().clone()
    }

    /// Returns the maximum number of operations and bytes of values of a transaction in delete-only mode: the write-ahead log has
    /// blocks for as much.
    pub(crate) fn group_limits(&self) -> (usize, usize) {
        let limit = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).max(1);
        (limit(self.reserve_bytes / DELETION_BYTES), limit(self.reserve_bytes / GROUP_DIVISOR))
    }

    /// Returns the number of free pages that one step on a full disk releases: the write-ahead log has blocks for moving as many.
    pub(crate) fn vacuum_pages(&self) -> i64 {
        i64::try_from(self.reserve_bytes / PAGE_BYTES / VACUUM_DIVISOR).unwrap_or(i64::MAX).max(1)
    }

    /// Enters delete-only mode. Makes the reserved part of the size limit available to deletions.
    pub(crate) async fn enter_delete_only(&self, connection: &mut SqliteConnection, reason: String) {
        tracing::error!(
            error = reason,
            "database or disk is full, accepting only deletions until space is available"
        );
        set_pragma(connection, format!("journal_size_limit = {}", self.reserve_bytes)).await;
        if let Some(pages) = self.max_pages {
            // A database that exceeded the limit when it was opened is limited to that size.
            let current = query_count(connection, "PRAGMA page_count").await.unwrap_or(0);
            let pages = pages.max(current) + self.reserve_bytes.div_ceil(PAGE_BYTES);
            set_pragma(connection, format!("max_page_count = {pages}")).await;
        }
        self.recount();
        self.delete_only_reason.send_replace(Some(reason));
    }

    /// Extends the database file for a group with this number of operations and bytes of values, so that no checkpoint needs
    /// more blocks of the disk.
    pub(crate) async fn extend_for_group(
        &self,
        connection: &mut SqliteConnection,
        operations: usize,
        bytes: usize,
    ) -> io::Result<()> {
        let Some(database) = self.database.upgrade() else { return Ok(()) };
        // A page of an overflow chain holds slightly less than its size.
        let needed = operations as u64 * OPERATION_PAGES + (bytes as u64).div_ceil(PAGE_BYTES - 8) * 2;
        let length = database.metadata()?.len();
        let bound = self.pages.fetch_add(needed, Ordering::Relaxed).saturating_add(needed);
        if bound.saturating_mul(PAGE_BYTES) <= length {
            return Ok(());
        }
        // If the pages cannot be counted, SQLite reports the error later.
        let Ok(used) = query_count(connection, "PRAGMA page_count").await else { return Ok(()) };
        self.pages.store(used + needed, Ordering::Relaxed);
        self.extend_to(database, used + needed).await
    }

    /// Extends the database file to all pages that it has in the open transaction.
    pub(crate) async fn extend_for_transaction(
        &self,
        connection: &mut SqliteConnection,
    ) -> Result<(), sqlx::Error> {
        let Some(database) = self.database.upgrade() else { return Ok(()) };
        let used = query_count(connection, "PRAGMA page_count").await?;
        self.recount();
        self.extend_to(database, used).await.map_err(sqlx::Error::Io)
    }

    async fn extend_to(&self, database: Arc<File>, pages: u64) -> io::Result<()> {
        let is_full = self.delete_only_reason().is_some();
        let extra_pages = if is_full { self.reserve_bytes.div_ceil(PAGE_BYTES) } else { 0 };
        let max_pages = self.max_pages.map_or(u64::MAX, |pages| pages + extra_pages);
        let (length, needed) = (database.metadata()?.len(), pages.min(max_pages) * PAGE_BYTES);
        if needed <= length {
            return Ok(());
        }
        let target = (needed + self.reserve_bytes / SLACK_DIVISOR).min(max_pages.saturating_mul(PAGE_BYTES));
        // Deletions may use the rest of the disk.
        let margin = if is_full { 0 } else { self.reserve_bytes / MARGIN_DIVISOR };
        let path = self.path.clone();
        let extended = portico_kit::tasks::blocking(move || {
            let lacks_space =
                |disk: &Disk| disk.available < target.saturating_sub(length).saturating_add(margin);
            match Disk::of(&path).filter(lacks_space) {
                Some(_) => Err(io::ErrorKind::StorageFull.into()),
                None => extend(&database, target),
            }
        });
        extended.await.unwrap_or(Ok(()))
    }

    /// Makes the next group count the pages of the database again.
    pub(crate) fn recount(&self) {
        self.pages.store(UNCOUNTED, Ordering::Relaxed);
    }

    /// Cuts a restarted write-ahead log to the size of the reserve, whose blocks it keeps. `write` commits a transaction:
    /// the first one after a restart cuts the log. Returns false if another program prevented the rest from being overwritten.
    pub(crate) async fn cut_log(
        &self,
        connection: &mut SqliteConnection,
        write: impl AsyncFnOnce(&mut SqliteConnection) -> Result<(), sqlx::Error>,
    ) -> Result<bool, sqlx::Error> {
        set_pragma(connection, format!("journal_size_limit = {}", self.reserve_bytes)).await;
        let written = write(connection).await;
        set_pragma(connection, format!("journal_size_limit = {LOG_KEPT_BYTES}")).await;
        written?;
        if query_count(connection, "PRAGMA secure_delete").await? == 0 {
            return Ok(true);
        }
        let row = sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").fetch_one(connection).await?;
        let (busy, frames): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        // After a checkpoint by another program, the number of frames is 0 here.
        let (0, Ok(frames @ 1..)) = (busy, u64::try_from(frames)) else { return Ok(false) };
        let log = sibling(&self.path, "-wal");
        let overwritten = portico_kit::tasks::blocking(move || {
            let log = File::options().write(true).open(log)?;
            write_zeros(&log, HEADER_BYTES + frames * FRAME_BYTES, log.metadata()?.len())
        });
        overwritten.await.unwrap_or(Ok(())).map(|()| true).map_err(sqlx::Error::Io)
    }

    /// Allocates the blocks of the reserve for the write-ahead log. Blocks.
    pub(crate) fn allocate_log(&self) -> io::Result<()> {
        let log = File::options().write(true).open(sibling(&self.path, "-wal"));
        match log {
            Ok(log) => extend(&log, self.reserve_bytes),
            // No log: nothing was ever read or written.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Moves the blocks of the write-ahead log to the reserve file, after the database is closed and the log is gone. Blocks.
    pub(crate) fn save_reserve(&self) -> io::Result<()> {
        if sibling(&self.path, "-wal").exists() {
            return Ok(());
        }
        write_reserve(&self.path, self.reserve_bytes)
    }

    /// Creates the reserve for the index of the log. Ignores errors: a start needs it only if the index was removed.
    fn reserve_index(&self) {
        let _ = write_reserve(&self.path, self.reserve_bytes.min(INDEX_BYTES));
    }

    /// Allocates blocks that the write-ahead log has lost, and leaves delete-only mode if there is enough space.
    pub(crate) async fn leave_delete_only(
        &self,
        connection: &mut SqliteConnection,
    ) -> Result<(), sqlx::Error> {
        // Errors show in the check of the disk.
        let allocated = self.allocate_log().is_ok();
        if self.delete_only_reason().is_none() || !allocated || !self.has_room() {
            return Ok(());
        }
        if let Some(pages) = self.max_pages {
            let used = query_count(connection, "PRAGMA page_count").await?;
            let used = used.saturating_sub(query_count(connection, "PRAGMA freelist_count").await?);
            let spare = self.reserve_bytes.div_ceil(PAGE_BYTES).min(pages / SPARE_DIVISOR);
            if used + spare > pages {
                return Ok(());
            }
            set_pragma(connection, format!("max_page_count = {pages}")).await;
        }
        set_pragma(connection, format!("journal_size_limit = {LOG_KEPT_BYTES}")).await;
        self.reserve_index();
        tracing::info!("space available again, accepting all writes");
        self.delete_only_reason.send_replace(None);
        Ok(())
    }

    /// Returns true if the disk has room for the write-ahead log at its maximum size, and for the next extension of the database.
    fn has_room(&self) -> bool {
        let Some(disk) = Disk::of(&self.path) else { return true };
        let log = fs::metadata(sibling(&self.path, "-wal")).map_or(0, |file| file.len());
        let needed = (log_pages(&self.path) * PAGE_BYTES).saturating_sub(log);
        disk.available >= needed + self.reserve_bytes / 2
    }

    /// Waits until space must be checked again. Never returns in normal mode.
    pub(crate) async fn wait_for_retry(&self) {
        let mut reason = self.delete_only_reason.subscribe();
        // `self` owns the sender, so the channel stays open.
        let _ = reason.wait_for(Option::is_some).await;
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Returns the number of pages of the write-ahead log before a checkpoint.
fn log_pages(database: &Path) -> u64 {
    Disk::of(database).map_or(LOG_PAGES, |disk| (disk.bytes / LOG_DIVISOR / PAGE_BYTES).clamp(1, LOG_PAGES))
}

/// Returns the pragmas that limit the files of a database.
pub(crate) fn pragmas(database: &Path, max_file_bytes: Option<u64>) -> String {
    let pages = log_pages(database);
    let mut pragmas =
        format!("PRAGMA wal_autocheckpoint = {pages}; PRAGMA journal_size_limit = {LOG_KEPT_BYTES};");
    if let Some(bytes) = max_file_bytes {
        pragmas.push_str(&format!("PRAGMA max_page_count = {};", max_pages(bytes)));
    }
    pragmas
}

fn reserve_path(database: &Path) -> PathBuf {
    sibling(database, ".reserve")
}

/// Returns the size of the reserve of a database, limited to a part of the disk: a larger one would fill the disk itself.
fn limit_reserve(database: &Path, bytes: u64) -> u64 {
    let Some(disk) = Disk::of(database) else { return bytes };
    let limit = disk.bytes / MAX_RESERVE_DIVISOR;
    if bytes > limit {
        tracing::warn!(
            bytes,
            limit = limit,
            "reserve for deletions exceeds a quarter of the disk, reserve reduced"
        );
    }
    bytes.min(limit)
}

fn write_reserve(database: &Path, bytes: u64) -> io::Result<()> {
    let path = reserve_path(database);
    let result = File::create(&path).and_then(|file| {
        extend(&file, bytes)?;
        files::match_owner(&file, database)
    });
    if result.is_err() {
        // An incomplete reserve is useless.
        remove(&path);
    }
    result
}

/// Frees the reserve of a database for its write-ahead log. Returns its size. Blocks.
pub(crate) fn release_reserve(database: &Path) -> u64 {
    let path = reserve_path(database);
    let bytes = fs::metadata(&path).map_or(0, |file| file.len());
    remove(&path);
    bytes
}

/// Restores the reserve that a failed start has freed: in the log if there is one. Blocks.
pub(crate) fn restore_reserve(database: &Path, bytes: u64) {
    if bytes == 0 {
        return;
    }
    let restored = match File::options().write(true).open(sibling(database, "-wal")) {
        Ok(log) => extend(&log, bytes).and_then(|()| write_reserve(database, bytes.min(INDEX_BYTES))),
        Err(_) => write_reserve(database, bytes),
    };
    if let Err(error) = restored {
        let error = portico_gostd::os::error_text(&error);
        tracing::warn!(error, "cannot allocate the reserve for deletions");
    }
}

fn remove(reserve: &Path) {
    match fs::remove_file(reserve) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let error = portico_gostd::os::error_text(&error);
            tracing::error!(path = %reserve.display(), error, "cannot remove the reserve for deletions");
        }
        _ => {}
    }
}

/// Returns true if a file next to a database cannot be written for lack of space. Blocks.
pub(crate) fn is_disk_full(database: &Path) -> bool {
    let probe = sibling(database, ".probe");
    let written = fs::write(&probe, [0; PROBE_BYTES]);
    // The file may not exist.
    let _ = fs::remove_file(&probe);
    written.is_err_and(|error| is_no_space(&error))
}

async fn set_pragma(connection: &mut SqliteConnection, pragma: String) {
    if let Err(error) = sqlx::query(AssertSqlSafe(format!("PRAGMA {pragma}"))).fetch_all(connection).await {
        tracing::error!(error = log_text(&error), pragma, "cannot change a limit of the database");
    }
}

async fn query_count(connection: &mut SqliteConnection, pragma: &'static str) -> Result<u64, sqlx::Error> {
    let count: i64 = sqlx::query_scalar(pragma).fetch_one(connection).await?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Converts the size limit to pages.
fn max_pages(bytes: u64) -> u64 {
    (bytes / PAGE_BYTES).max(1)
}

/// Returns true if a Txn deletes objects: it creates none, and deletes one or writes only objects that are being deleted.
pub(crate) fn frees_space(txn: &Txn) -> bool {
    let creates = |operation: &Operation| {
        matches!((operation.precondition, &operation.change), (Precondition::Absent, Change::Put(_)))
    };
    if txn.operations.iter().any(creates) {
        return false;
    }
    let mut changes = txn.operations.iter().map(|operation| &operation.change);
    let deletes = changes.clone().any(|change| matches!(change, Change::Delete(_)));
    deletes
        || changes.all(|change| match change {
            Change::Put(value) => is_terminating(value.json()),
            Change::Check | Change::Delete(_) => true,
        })
}

#[derive(Deserialize)]
struct Terminating {
    metadata: TerminatingMetadata,
}

#[derive(Deserialize)]
struct TerminatingMetadata {
    #[serde(rename = "deletionTimestamp")]
    deletion_timestamp: Option<IgnoredAny>,
}

/// Returns true if an object is being deleted. The field name alone may occur anywhere in it.
fn is_terminating(json: &[u8]) -> bool {
    const NAME: &[u8] = b"\"deletionTimestamp\":";
    memchr::memmem::find(json, NAME).is_some()
        && serde_json::from_slice::<Terminating>(json)
            .is_ok_and(|object| object.metadata.deletion_timestamp.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Key, Resource};
    use crate::record::Value;
    use sqlx::Connection;

    fn operation(precondition: Precondition, metadata: &str, data: &str) -> Operation {
        let json = format!(r#"{{"kind":"ConfigMap","metadata":{{{metadata}}},"data":{{{data}}}}}"#);
        let value = Value::new(json.into_bytes(), Default::default());
        Operation {
            key: Key::new(&Resource::new("", "configmaps"), "a", "b"),
            precondition,
            change: Change::Put(value),
        }
    }

    #[test]
    fn only_deletions_and_writes_of_terminating_objects_free_space() {
        const DELETED: &str = r#""deletionTimestamp":"2026-01-01T00:00:00Z""#;
        let deletion = || {
            let Operation { key, change: Change::Put(value), .. } = operation(Precondition::Exists, "", "")
            else {
                unreachable!()
            };
            Operation { key, precondition: Precondition::Exists, change: Change::Delete(value) }
        };
        let live = || operation(Precondition::Exists, "", "");
        for (operations, expected, description) in [
            (vec![operation(Precondition::Revision(5), DELETED, "")], true, "terminating object"),
            (vec![operation(Precondition::Revision(5), "", DELETED)], false, "field name in the data only"),
            (
                vec![operation(Precondition::Revision(5), r#""deletionTimestamp":null"#, DELETED)],
                false,
                "null deletion timestamp",
            ),
            (vec![operation(Precondition::Absent, DELETED, "")], false, "creation of a terminating object"),
            (
                vec![operation(Precondition::Exists, DELETED, ""), live()],
                false,
                "update of another live object",
            ),
            (vec![live(), deletion()], true, "update together with a deletion"),
            (
                vec![deletion(), operation(Precondition::Absent, "", "")],
                false,
                "creation together with a deletion",
            ),
        ] {
            assert_eq!(frees_space(&Txn { operations }), expected, "{description}");
        }
    }

    #[test]
    fn a_reserve_does_not_fill_its_disk() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("portico.db");
        let disk = Disk::of(&database).unwrap();
        assert_eq!(limit_reserve(&database, u64::MAX), disk.bytes / MAX_RESERVE_DIVISOR);
        assert_eq!(limit_reserve(&database, 4096), 4096);
    }

    #[test]
    fn the_log_has_the_blocks_of_the_reserve_while_it_exists() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("portico.db");
        let (log, reserve) = (sibling(&database, "-wal"), reserve_path(&database));
        fs::write(&database, "").unwrap();
        fs::write(&log, "frames").unwrap();
        let space = Space::new(&database, &Arc::new(File::open(&database).unwrap()), 4096, None);
        assert_eq!(fs::metadata(&log).unwrap().len(), 4096);
        assert_eq!(release_reserve(&database), 4096);
        space.save_reserve().unwrap();
        assert!(!reserve.exists());
        fs::remove_file(&log).unwrap();
        space.save_reserve().unwrap();
        assert_eq!(fs::metadata(&reserve).unwrap().len(), 4096);
        release_reserve(&database);
        assert!(!reserve.exists());
    }

    #[tokio::test]
    async fn near_its_limit_the_database_is_extended_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("portico.db");
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&database).create_if_missing(true);
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::query("CREATE TABLE a (b)").execute(&mut connection).await.unwrap();
        let file = Arc::new(File::options().write(true).open(&database).unwrap());
        let limit = 8 * PAGE_BYTES;
        let space = Space::new(&database, &file, 4096, Some(limit));
        space.extend_for_group(&mut connection, 100, 0).await.unwrap();
        assert_eq!(file.metadata().unwrap().len(), limit);
        space.delete_only_reason.send_replace(Some(NO_SPACE.to_owned()));
        space.extend_for_group(&mut connection, 100, 0).await.unwrap();
        assert_eq!(file.metadata().unwrap().len(), limit + space.reserve_bytes);
    }

    #[test]
    fn a_disk_with_space_and_a_missing_folder_do_not_count_as_full() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_disk_full(&folder.path().join("portico.db")));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(!is_disk_full(&folder.path().join("nowhere/portico.db")));
    }
}
