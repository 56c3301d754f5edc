//! Space for deletions when the disk, or the database's size limit, is full.
//!
//! A file of zeros beside the database keeps some of the disk. When SQLite finds no space the file is removed, the size
//! limit grows by as much, and from then on only what makes objects go is written, until the file can be made again. The same
//! is done when the database does not open, or does not close in order, for lack of space.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use sqlx::{AssertSqlSafe, SqliteConnection};
use tokio::sync::watch;

use super::failure::logged;
use super::mark::beside;
use crate::txn::{Change, Expect, Operation, Txn};

/// Bytes of a database page; also what the size limit is counted in.
pub(crate) const PAGE_BYTES: u64 = 4_096;

/// Which part of the size limit must be free at most before everything is written again; and which part of the reserve must
/// stay free on the disk beside the reserve itself.
const SPARE_PART: u64 = 8;
/// Which part of its file system the reserve takes at most.
const MAX_PART: u64 = 4;
/// Bytes that are written to find out whether any can be: more than SQLite adds to a file at once.
const PROBE_BYTES: usize = 64 * 1024;
/// How often it is tried to get the reserve back.
const RETRY: Duration = Duration::from_secs(1);

/// See the module.
pub(crate) struct Space {
    reserve: PathBuf,
    bytes: u64,
    max_pages: Option<u64>,
    /// Why only deletions are written.
    full: watch::Sender<Option<String>>,
}

impl Space {
    /// `full`: why only deletions are written from the beginning.
    pub(crate) fn new(
        database: &Path,
        bytes: u64,
        max_file_bytes: Option<u64>,
        full: Option<String>,
    ) -> Self {
        Self {
            reserve: reserve(database),
            bytes: bounded(database, bytes),
            max_pages: max_file_bytes.map(max_pages),
            full: watch::Sender::new(full),
        }
    }

    /// Why only deletions are written; nothing while everything is.
    pub(crate) fn full(&self) -> Option<String> {
        self.full.borrow().clone()
    }

    /// SQLite found no space: gives the reserve to deletions.
    pub(crate) async fn exhausted(&self, connection: &mut SqliteConnection, why: String) {
        tracing::error!(
            error = why,
            "the database or its disk is full: only deletions are written until there is space again"
        );
        self.release();
        if let Some(pages) = self.max_pages {
            // A database that was larger than its limit when it was opened is limited to what it had.
            let there = count(connection, "PRAGMA page_count").await.unwrap_or(0);
            self.limit(connection, pages.max(there) + self.bytes.div_ceil(PAGE_BYTES)).await;
        }
        self.full.send_replace(Some(why));
    }

    /// Gives the reserve away; whether there was one.
    pub(crate) fn release(&self) -> bool {
        remove(&self.reserve)
    }

    async fn limit(&self, connection: &mut SqliteConnection, pages: u64) {
        let pragma = AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
        if let Err(error) = sqlx::query(pragma).fetch_all(connection).await {
            tracing::error!(error = logged(&error), "the size limit cannot be changed");
        }
    }

    /// Makes the reserve when it is missing, if that leaves some of the disk free. Blocks.
    pub(crate) fn replenish(&self) -> io::Result<()> {
        let there = fs::metadata(&self.reserve).map_or(0, |file| file.len());
        if there == self.bytes && self.reserve.exists() {
            return Ok(());
        }
        let needed = self.bytes.saturating_sub(there).saturating_add(self.bytes / SPARE_PART);
        if Disk::of(&self.reserve).is_some_and(|disk| disk.available < needed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let made = self.make();
        if made.is_err() {
            // What was written of it is needed more elsewhere.
            let _ = fs::remove_file(&self.reserve);
        }
        made
    }

    fn make(&self) -> io::Result<()> {
        let zeros = vec![0; 64 * 1024];
        let mut file = File::create(&self.reserve)?;
        let mut left = self.bytes;
        while left > 0 {
            let part = left.min(zeros.len() as u64);
            // At most the array's length.
            file.write_all(&zeros[..part as usize])?;
            left -= part;
        }
        portico_kit::atomic_file::sync(&file)
    }

    /// The reserve is there again: everything is written if the size limit has space for as much, too.
    pub(crate) async fn relax(&self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        if self.full.borrow().is_none() {
            return Ok(());
        }
        if let Some(pages) = self.max_pages {
            let used = count(connection, "PRAGMA page_count").await?;
            let used = used.saturating_sub(count(connection, "PRAGMA freelist_count").await?);
            let spare = self.bytes.div_ceil(PAGE_BYTES).min(pages / SPARE_PART);
            if used + spare > pages {
                return Ok(());
            }
            self.limit(connection, pages).await;
        }
        tracing::info!("there is space again: everything is written");
        self.full.send_replace(None);
        Ok(())
    }

    /// Waits until it is time to look for space again: for ever while there is no lack of it.
    pub(crate) async fn retry(&self) {
        let mut full = self.full.subscribe();
        // The sender is this one's own: it does not go away meanwhile.
        let _ = full.wait_for(Option::is_some).await;
        tokio::time::sleep(RETRY).await;
    }
}

/// A file system.
struct Disk {
    bytes: u64,
    available: u64,
}

impl Disk {
    /// That of a file; none when it does not say how large it is.
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        let stats = rustix::fs::statvfs(super::files::folder_of(path)).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(stats.f_frsize);
        Some(Self { bytes: bytes(stats.f_blocks), available: bytes(stats.f_bavail) })
            .filter(|disk| disk.bytes > 0)
    }

    #[cfg(not(unix))]
    fn of(_: &Path) -> Option<Self> {
        None
    }
}

fn reserve(database: &Path) -> PathBuf {
    beside(database, ".reserve")
}

/// How large the reserve of a database is that shall be so large: one that takes much of the disk would itself be what fills it.
fn bounded(database: &Path, bytes: u64) -> u64 {
    let Some(disk) = Disk::of(database) else { return bytes };
    let most = disk.bytes / MAX_PART;
    if bytes > most {
        tracing::warn!(
            bytes,
            most,
            "the reserve for deletions is larger than a quarter of its disk: it is made smaller"
        );
    }
    bytes.min(most)
}

/// Gives away the reserve of a database that nobody else has open; whether there was one.
pub(crate) fn release(database: &Path) -> bool {
    remove(&reserve(database))
}

fn remove(reserve: &Path) -> bool {
    match fs::remove_file(reserve) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => {
            let error = portico_gostd::os::error_text(&error);
            tracing::error!(path = %reserve.display(), error, "the reserve cannot be removed");
            false
        }
    }
}

/// Whether an error of a file says that no space is left.
pub(crate) fn is_lack(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether nothing can be written beside a database for lack of space. Blocks.
pub(crate) fn none_left(database: &Path) -> bool {
    let probe = beside(database, ".probe");
    let written = fs::write(&probe, [0; PROBE_BYTES]);
    // There is none when it could not be made.
    let _ = fs::remove_file(&probe);
    written.is_err_and(|error| is_lack(&error))
}

async fn count(connection: &mut SqliteConnection, pragma: &'static str) -> Result<u64, sqlx::Error> {
    let count: i64 = sqlx::query_scalar(pragma).fetch_one(connection).await?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// The size limit in pages.
pub(crate) fn max_pages(bytes: u64) -> u64 {
    (bytes / PAGE_BYTES).max(1)
}

/// Whether a Txn makes objects go: it creates none, and deletes one or writes only objects that are being deleted.
pub(crate) fn frees(txn: &Txn) -> bool {
    let creates = |operation: &Operation| {
        matches!((operation.expect, &operation.change), (Expect::Absent, Change::Put(_)))
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

/// Whether an object is being deleted. The name alone may stand anywhere in it.
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

    fn operation(expect: Expect, metadata: &str, data: &str) -> Operation {
        let json = format!(r#"{{"kind":"ConfigMap","metadata":{{{metadata}}},"data":{{{data}}}}}"#);
        let value = Value::new(json.into_bytes(), Default::default());
        Operation {
            key: Key::new(&Resource::new("", "configmaps"), "a", "b"),
            expect,
            change: Change::Put(value),
        }
    }

    #[test]
    fn only_what_makes_objects_go_frees() {
        const DELETED: &str = r#""deletionTimestamp":"2026-01-01T00:00:00Z""#;
        let deletion = || {
            let Operation { key, change: Change::Put(value), .. } = operation(Expect::Exists, "", "") else {
                unreachable!()
            };
            Operation { key, expect: Expect::Exists, change: Change::Delete(value) }
        };
        let live = || operation(Expect::Exists, "", "");
        for (operations, expected, why) in [
            (vec![operation(Expect::Revision(5), DELETED, "")], true, "it is being deleted"),
            (vec![operation(Expect::Revision(5), "", DELETED)], false, "the name of its data alone"),
            (
                vec![operation(Expect::Revision(5), r#""deletionTimestamp":null"#, DELETED)],
                false,
                "not deleted",
            ),
            (vec![operation(Expect::Absent, DELETED, "")], false, "creations never"),
            (vec![operation(Expect::Exists, DELETED, ""), live()], false, "another one grows"),
            (vec![live(), deletion()], true, "an update that a deletion brings along"),
            (vec![deletion(), operation(Expect::Absent, "", "")], false, "a creation beside a deletion"),
        ] {
            assert_eq!(frees(&Txn { operations }), expected, "{why}");
        }
    }

    #[test]
    fn a_reserve_is_never_so_large_that_it_fills_its_disk() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("portico.db");
        let disk = Disk::of(&database).unwrap();
        assert_eq!(bounded(&database, u64::MAX), disk.bytes / MAX_PART);
        assert_eq!(bounded(&database, 4096), 4096);
        // More than there is now, on a disk that is large enough: nothing of it is written.
        let mut space = Space::new(&database, 4096, None, None);
        space.bytes = disk.available;
        assert_eq!(space.replenish().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(!reserve(&database).exists());
        space.bytes = 4096;
        space.replenish().unwrap();
        assert_eq!(fs::metadata(reserve(&database)).unwrap().len(), 4096);
        assert!(space.release() && !space.release());
    }

    #[test]
    fn where_there_is_space_or_no_folder_none_is_lacking() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!none_left(&folder.path().join("portico.db")));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(!none_left(&folder.path().join("nowhere/portico.db")));
    }
}
