//! Space for deletions when the disk, or the database's size limit, is full.
//!
//! A file of zeros beside the database keeps some of the disk. When SQLite finds no space the file is removed, the size
//! limit grows by as much, and from then on only what makes objects go is written, until the file can be made again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::{AssertSqlSafe, SqliteConnection};
use tokio::sync::watch;

use super::mark::beside;
use super::open::PAGE_BYTES;
use crate::txn::{Change, Txn};

/// Which part of the size limit must be free at most before everything is written again.
const SPARE_PART: u64 = 8;
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
    pub(crate) fn new(database: &Path, bytes: u64, max_file_bytes: Option<u64>) -> Self {
        Self {
            reserve: beside(database, ".reserve"),
            bytes,
            max_pages: max_file_bytes.map(max_pages),
            full: watch::Sender::new(None),
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
        match fs::remove_file(&self.reserve) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::error!(path = %self.reserve.display(), %error, "the reserve cannot be removed");
            }
            _ => {}
        }
        if let Some(pages) = self.max_pages {
            // A database that was larger than its limit when it was opened is limited to what it had.
            let there = count(connection, "PRAGMA page_count").await.unwrap_or(0);
            self.limit(connection, pages.max(there) + self.bytes.div_ceil(PAGE_BYTES)).await;
        }
        self.full.send_replace(Some(why));
    }

    async fn limit(&self, connection: &mut SqliteConnection, pages: u64) {
        let pragma = AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
        if let Err(error) = sqlx::query(pragma).fetch_all(connection).await {
            tracing::error!(%error, "the size limit cannot be changed");
        }
    }

    /// Makes the reserve when it is missing. Blocks.
    pub(crate) fn replenish(&self) -> io::Result<()> {
        if fs::metadata(&self.reserve).is_ok_and(|file| file.len() == self.bytes) {
            return Ok(());
        }
        let made = self.make();
        if made.is_err() {
            // What was written of it is needed more elsewhere.
            let _ = fs::remove_file(&self.reserve);
        }
        made
    }

    fn make(&self) -> io::Result<()> {
        static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
        let mut file = File::create(&self.reserve)?;
        let mut left = self.bytes;
        while left > 0 {
            let part = left.min(ZEROS.len() as u64);
            // At most the array's length.
            file.write_all(&ZEROS[..part as usize])?;
            left -= part;
        }
        file.sync_all()
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

async fn count(connection: &mut SqliteConnection, pragma: &'static str) -> Result<u64, sqlx::Error> {
    let count: i64 = sqlx::query_scalar(pragma).fetch_one(connection).await?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// The size limit in pages.
pub(crate) fn max_pages(bytes: u64) -> u64 {
    (bytes / PAGE_BYTES).max(1)
}

/// Whether a Txn makes objects go: it deletes one, or writes only objects that are being deleted.
pub(crate) fn frees(txn: &Txn) -> bool {
    const MARK: &[u8] = b"\"deletionTimestamp\":";
    let mut changes = txn.operations.iter().map(|operation| &operation.change);
    let deletes = changes.clone().any(|change| matches!(change, Change::Delete(_)));
    deletes
        || changes.all(|change| match change {
            Change::Put(value) => memchr::memmem::find(value.json(), MARK).is_some(),
            Change::Check | Change::Delete(_) => true,
        })
}
