//! Mark of a database: a small file next to it. It reveals at the next start that the database was replaced by an older copy,
//! or that its write-ahead log was removed.
//!
//! The mark is never ahead of the database, and adds no cost to writes: it is written when the database is opened and
//! closed, every [`MARK_REVISIONS`], and with each compaction that finds a new revision.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use portico_kit::atomic_file;
use serde::{Deserialize, Serialize};

use super::failure::is_no_space;
use super::open_error::OpenError;
use super::{files, wal};

/// Maximum number of revisions between updates of the mark.
pub(crate) const MARK_REVISIONS: i64 = 4_096;

/// Mark of a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Mark {
    pub(crate) store_id: String,
    pub(crate) epoch: i64,
    /// Revision that the database has reached. After a failure of the database it may contain one more group.
    pub(crate) revision: i64,
    /// True if a process has the database open, so that a write-ahead log exists.
    pub(crate) open: bool,
    /// True if a start has found the log missing and has not finished: the present log belongs to that start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) log_missing: bool,
    /// True if the log was not missing but damaged, with acknowledged writes after the damage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) log_damaged: bool,
    /// Epoch that is being started. Until the start is committed, the database has `epoch`, afterwards this one. It is not
    /// served until `epoch` is the new epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) begins: Option<EpochStart>,
}

/// Start of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EpochStart {
    pub(crate) epoch: i64,
    pub(crate) revision: i64,
}

/// Identity in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DatabaseIdentity {
    pub(crate) store_id: String,
    pub(crate) epoch: i64,
    pub(crate) revision: i64,
}

/// Result of comparing a database with its mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The database is consistent with the mark.
    Trusted,
    /// The write-ahead log of the last process is missing or damaged. Another program may have checkpointed it, or the last
    /// writes may be lost.
    LogMissing,
    /// The mark describes another database.
    Replaced(String),
}

impl Mark {
    /// Creates the mark of a database that has reached a revision.
    pub(crate) fn new(store_id: String, epoch: i64, revision: i64, open: bool) -> Self {
        Self { store_id, epoch, revision, open, log_missing: false, log_damaged: false, begins: None }
    }

    /// Prepares the mark of a database that is about to be opened for writing, which creates a log. Records durably that the
    /// log of the last process is missing or damaged, because a start that fails later leaves its own log. Blocks.
    pub(crate) fn before_opening(database: &Path) -> Result<Option<Self>, OpenError> {
        let Some(mark) = Self::read(database)? else { return Ok(None) };
        if !mark.open || mark.log_missing {
            return Ok(Some(mark));
        }
        let log = sibling(database, "-wal");
        let log_damaged = match wal::has_lost_commits(&log) {
            Ok(damaged) => damaged,
            Err(error) => return Err(OpenError::File { path: log, error }),
        };
        if log.exists() && !log_damaged {
            return Ok(Some(mark));
        }
        let mark = Self { log_missing: true, log_damaged, ..mark };
        mark.write(database)?;
        Ok(Some(mark))
    }

    /// Returns the mark to store while an epoch begins.
    pub(crate) fn with_epoch_start(&self, (epoch, revision): (i64, i64)) -> Self {
        Self { begins: Some(EpochStart { epoch, revision }), ..self.clone() }
    }

    /// Reads the mark of a database; `None` if the database was never opened by this version, or if the mark
    /// cannot be read.
    pub(crate) fn read(database: &Path) -> Result<Option<Self>, OpenError> {
        let path = mark_path(database);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(OpenError::File { path, error }),
        };
        match serde_json::from_slice(&bytes) {
            Ok(mark) => Ok(Some(mark)),
            Err(error) => {
                let error = portico_gostd::json::error_text(&error);
                tracing::warn!(
                    path = %path.display(),
                    error,
                    "cannot read the mark file of the database, creating a new one"
                );
                Ok(None)
            }
        }
    }

    /// Writes the mark of a database durably, with the owner of the database.
    pub(crate) fn write(&self, database: &Path) -> Result<(), OpenError> {
        let path = mark_path(database);
        // A struct of strings and numbers always encodes.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        let written = match atomic_file::write(&path, &bytes, atomic_file::PRIVATE_MODE) {
            Err(error) if is_no_space(&error) && path.exists() => overwrite(&path, bytes),
            written => written,
        };
        let result = written.and_then(|()| files::match_owner(&File::open(&path)?, database));
        result.map_err(|error| OpenError::File { path, error })
    }
}

/// Overwrites the present mark: a full disk has no space for a second file. If the machine fails during the write,
/// the mark cannot be read.
fn overwrite(path: &Path, mut bytes: Vec<u8>) -> io::Result<()> {
    let mut file = File::options().write(true).open(path)?;
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(0);
    bytes.resize(bytes.len().max(length), b' ');
    file.write_all(&bytes)?;
    atomic_file::sync(&file)
}

/// Compares a database with its mark.
pub(crate) fn compare(mark: Option<&Mark>, found: Option<&DatabaseIdentity>) -> Verdict {
    let Some(mark) = mark else { return Verdict::Trusted };
    let expected = mark.revision;
    let Some(found) = found else {
        return Verdict::Replaced(format!("empty database, expected revision {expected}"));
    };
    if found.store_id != mark.store_id {
        return Verdict::Replaced(format!("store {}, expected store {}", found.store_id, mark.store_id));
    }
    // The process that began this epoch was interrupted before it updated the mark.
    if mark.begins == Some(EpochStart { epoch: found.epoch, revision: found.revision }) {
        return Verdict::Trusted;
    }
    if found.epoch != mark.epoch {
        return Verdict::Replaced(format!("epoch {}, expected epoch {}", found.epoch, mark.epoch));
    }
    match (mark.log_missing, found.revision < expected) {
        (true, true) => Verdict::Replaced(format!(
            "write-ahead log is {}: revision {}, expected {expected}",
            if mark.log_damaged { "damaged" } else { "missing" },
            found.revision
        )),
        (false, true) => {
            Verdict::Replaced(format!("older copy: revision {}, expected {expected}", found.revision))
        }
        (true, false) => Verdict::LogMissing,
        (false, false) => Verdict::Trusted,
    }
}

/// Returns the path next to a database with this suffix.
pub(crate) fn sibling(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn mark_path(database: &Path) -> PathBuf {
    sibling(database, ".mark")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(log_missing: bool) -> Mark {
        Mark { log_missing, ..Mark::new("a".to_owned(), 2, 100, true) }
    }

    fn found(store_id: &str, epoch: i64, revision: i64) -> DatabaseIdentity {
        DatabaseIdentity { store_id: store_id.to_owned(), epoch, revision }
    }

    #[test]
    fn a_database_is_trusted_unless_its_mark_contradicts_it() {
        let same = found("a", 2, 100);
        assert_eq!(compare(None, Some(&same)), Verdict::Trusted);
        assert_eq!(compare(None, None), Verdict::Trusted);
        assert_eq!(compare(Some(&mark(false)), Some(&same)), Verdict::Trusted);
        assert_eq!(compare(Some(&mark(false)), Some(&found("a", 2, 900))), Verdict::Trusted);
        assert_eq!(compare(Some(&mark(true)), Some(&found("a", 2, 900))), Verdict::LogMissing);
        for (found, log_missing, reason) in [
            (None, true, "empty database, expected revision 100"),
            (Some(found("b", 2, 100)), false, "store b, expected store a"),
            (Some(found("a", 1, 100)), false, "epoch 1, expected epoch 2"),
            (Some(found("a", 3, 100)), false, "epoch 3, expected epoch 2"),
            (Some(found("a", 2, 99)), false, "older copy: revision 99, expected 100"),
            (Some(found("a", 2, 99)), true, "write-ahead log is missing: revision 99, expected 100"),
        ] {
            let verdict = compare(Some(&mark(log_missing)), found.as_ref());
            assert_eq!(verdict, Verdict::Replaced(reason.to_owned()));
        }
    }

    #[test]
    fn a_database_of_the_starting_or_the_earlier_epoch_is_trusted() {
        let starting = mark(true).with_epoch_start((3, 1_100));
        assert_eq!(compare(Some(&starting), Some(&found("a", 2, 100))), Verdict::LogMissing);
        assert_eq!(compare(Some(&starting), Some(&found("a", 3, 1_100))), Verdict::Trusted);
        for other in [found("a", 3, 1_101), found("a", 4, 1_100), found("b", 3, 1_100)] {
            assert!(matches!(compare(Some(&starting), Some(&other)), Verdict::Replaced(_)), "{other:?}");
        }
    }

    #[test]
    fn a_mark_is_read_back_and_an_unreadable_mark_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("portico.db");
        assert_eq!(Mark::read(&database).unwrap(), None);
        std::fs::write(&database, "").unwrap();
        for mark in [mark(false), mark(true).with_epoch_start((3, 1_100))] {
            mark.write(&database).unwrap();
            assert_eq!(Mark::read(&database).unwrap(), Some(mark));
        }
        for mark in [mark(true).with_epoch_start((3, 1_100)), mark(false)] {
            let bytes = serde_json::to_vec(&mark).unwrap();
            overwrite(&mark_path(&database), bytes).unwrap();
            assert_eq!(Mark::read(&database).unwrap(), Some(mark));
        }
        std::fs::write(mark_path(&database), "{").unwrap();
        assert_eq!(Mark::read(&database).unwrap(), None);
    }

    #[test]
    fn a_missing_log_stays_recorded_after_another_log_is_created() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("portico.db");
        std::fs::write(&database, "").unwrap();
        assert_eq!(Mark::before_opening(&database).unwrap(), None);
        let log = sibling(&database, "-wal");
        std::fs::write(&log, "").unwrap();
        mark(false).write(&database).unwrap();
        assert_eq!(Mark::before_opening(&database).unwrap(), Some(mark(false)));
        std::fs::remove_file(&log).unwrap();
        assert_eq!(Mark::before_opening(&database).unwrap(), Some(mark(true)));
        std::fs::write(&log, "").unwrap();
        assert_eq!(Mark::before_opening(&database).unwrap(), Some(mark(true)));
    }
}
