//! What is known of a database outside of it: a small file beside it, by which an older copy, or a database whose
//! write-ahead log was taken away, is noticed when it is opened.
//!
//! The mark is never ahead of the database. It costs no write anything: it is written when the database is opened and
//! closed, every [`MARK_REVISIONS`], and with each compaction that finds a new revision.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use portico_kit::atomic_file;
use serde::{Deserialize, Serialize};

use super::failure::is_lack;
use super::open_error::OpenError;
use super::{files, wal};

/// How many revisions may pass before the mark follows, at most.
pub(crate) const MARK_REVISIONS: i64 = 4_096;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Mark {
    pub(crate) store_id: String,
    pub(crate) epoch: i64,
    /// The database has reached at least this revision. After a failure of the database it may have gone one group further.
    pub(crate) revision: i64,
    /// True if a process has it open: there is a write-ahead log then.
    pub(crate) open: bool,
    /// A start has found that log missing and has not come to its end: the log that is there now is one of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) log_missing: bool,
    /// The log was not missing but damaged, with writes behind the damage that were acknowledged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) log_damaged: bool,
    /// The new epoch that somebody is about to begin: the database is of the one above until that is committed, and of this
    /// one after it. Nobody is served until the mark says so, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) begins: Option<Beginning>,
}

/// Where an epoch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Beginning {
    pub(crate) epoch: i64,
    pub(crate) revision: i64,
}

/// The identity in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) store_id: String,
    pub(crate) epoch: i64,
    pub(crate) revision: i64,
}

/// Mark and database compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing speaks against the database.
    Trusted,
    /// The write-ahead log is gone that the last process has left, or damaged. Perhaps another program has moved it into the database,
    /// perhaps the last writes went with it.
    LogMissing,
    /// The database is not the one that the mark is about.
    Replaced(String),
}

impl Mark {
    /// Of a database that has reached a revision.
    pub(crate) fn new(store_id: String, epoch: i64, revision: i64, open: bool) -> Self {
        Self { store_id, epoch, revision, open, log_missing: false, log_damaged: false, begins: None }
    }

    /// The mark of a database that is about to be opened for writing. That makes a log: whether the one of the last process is
    /// missing or damaged is noted durably before, since a start that fails later leaves its own. Blocks.
    pub(crate) fn before_opening(database: &Path) -> Result<Option<Self>, OpenError> {
        let Some(mark) = Self::read(database)? else { return Ok(None) };
        if !mark.open || mark.log_missing {
            return Ok(Some(mark));
        }
        let log = beside(database, "-wal");
        let log_damaged = match wal::lost_commits(&log) {
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

    /// The same, while an epoch begins.
    pub(crate) fn beginning(&self, (epoch, revision): (i64, i64)) -> Self {
        Self { begins: Some(Beginning { epoch, revision }), ..self.clone() }
    }

    /// Reads the mark of a database; none for a database that was never opened by this version, and for one whose mark
    /// cannot be read.
    pub(crate) fn read(database: &Path) -> Result<Option<Self>, OpenError> {
        let path = path(database);
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

    /// Writes the mark of a database, durably; it belongs to whom the database belongs.
    pub(crate) fn write(&self, database: &Path) -> Result<(), OpenError> {
        let path = path(database);
        // A struct of strings and numbers always encodes.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        let written = match atomic_file::write(&path, &bytes, atomic_file::PRIVATE) {
            Err(error) if is_lack(&error) && path.exists() => overwrite(&path, bytes),
            written => written,
        };
        let given = written.and_then(|()| files::give(&File::open(&path)?, database));
        given.map_err(|error| OpenError::File { path, error })
    }
}

/// Writes a mark over the present one: a full disk has no space for a second file. If the machine goes down during the write,
/// the mark cannot be read.
fn overwrite(path: &Path, mut bytes: Vec<u8>) -> io::Result<()> {
    let mut file = File::options().write(true).open(path)?;
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(0);
    bytes.resize(bytes.len().max(length), b' ');
    file.write_all(&bytes)?;
    atomic_file::sync(&file)
}

/// Compares a database with its mark.
pub(crate) fn compare(mark: Option<&Mark>, found: Option<&Found>) -> Verdict {
    let Some(mark) = mark else { return Verdict::Trusted };
    let reached = mark.revision;
    let Some(found) = found else {
        return Verdict::Replaced(format!("empty database, expected revision {reached}"));
    };
    if found.store_id != mark.store_id {
        return Verdict::Replaced(format!("store {}, expected store {}", found.store_id, mark.store_id));
    }
    // Whoever has begun this epoch was cut off before the mark said so.
    if mark.begins == Some(Beginning { epoch: found.epoch, revision: found.revision }) {
        return Verdict::Trusted;
    }
    if found.epoch != mark.epoch {
        return Verdict::Replaced(format!("epoch {}, expected epoch {}", found.epoch, mark.epoch));
    }
    match (mark.log_missing, found.revision < reached) {
        (true, true) => Verdict::Replaced(format!(
            "write-ahead log is {}: revision {}, expected {reached}",
            if mark.log_damaged { "damaged" } else { "missing" },
            found.revision
        )),
        (false, true) => {
            Verdict::Replaced(format!("older copy: revision {}, expected {reached}", found.revision))
        }
        (true, false) => Verdict::LogMissing,
        (false, false) => Verdict::Trusted,
    }
}

/// The file beside a database whose name goes on like this.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn path(database: &Path) -> PathBuf {
    beside(database, ".mark")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(log_missing: bool) -> Mark {
        Mark { log_missing, ..Mark::new("a".to_owned(), 2, 100, true) }
    }

    fn found(store_id: &str, epoch: i64, revision: i64) -> Found {
        Found { store_id: store_id.to_owned(), epoch, revision }
    }

    #[test]
    fn a_database_is_trusted_unless_its_mark_speaks_against_it() {
        let same = found("a", 2, 100);
        assert_eq!(compare(None, Some(&same)), Verdict::Trusted);
        assert_eq!(compare(None, None), Verdict::Trusted);
        assert_eq!(compare(Some(&mark(false)), Some(&same)), Verdict::Trusted);
        assert_eq!(compare(Some(&mark(false)), Some(&found("a", 2, 900))), Verdict::Trusted);
        assert_eq!(compare(Some(&mark(true)), Some(&found("a", 2, 900))), Verdict::LogMissing);
        for (found, log_missing, why) in [
            (None, true, "empty database, expected revision 100"),
            (Some(found("b", 2, 100)), false, "store b, expected store a"),
            (Some(found("a", 1, 100)), false, "epoch 1, expected epoch 2"),
            (Some(found("a", 3, 100)), false, "epoch 3, expected epoch 2"),
            (Some(found("a", 2, 99)), false, "older copy: revision 99, expected 100"),
            (Some(found("a", 2, 99)), true, "write-ahead log is missing: revision 99, expected 100"),
        ] {
            let verdict = compare(Some(&mark(log_missing)), found.as_ref());
            assert_eq!(verdict, Verdict::Replaced(why.to_owned()));
        }
    }

    #[test]
    fn while_an_epoch_begins_a_database_of_it_or_of_the_one_before_is_trusted() {
        let beginning = mark(true).beginning((3, 1_100));
        assert_eq!(compare(Some(&beginning), Some(&found("a", 2, 100))), Verdict::LogMissing);
        assert_eq!(compare(Some(&beginning), Some(&found("a", 3, 1_100))), Verdict::Trusted);
        for other in [found("a", 3, 1_101), found("a", 4, 1_100), found("b", 3, 1_100)] {
            assert!(matches!(compare(Some(&beginning), Some(&other)), Verdict::Replaced(_)), "{other:?}");
        }
    }

    #[test]
    fn a_mark_comes_back_and_one_that_cannot_be_read_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("portico.db");
        assert_eq!(Mark::read(&database).unwrap(), None);
        std::fs::write(&database, "").unwrap();
        for mark in [mark(false), mark(true).beginning((3, 1_100))] {
            mark.write(&database).unwrap();
            assert_eq!(Mark::read(&database).unwrap(), Some(mark));
        }
        for mark in [mark(true).beginning((3, 1_100)), mark(false)] {
            let bytes = serde_json::to_vec(&mark).unwrap();
            overwrite(&path(&database), bytes).unwrap();
            assert_eq!(Mark::read(&database).unwrap(), Some(mark));
        }
        std::fs::write(path(&database), "{").unwrap();
        assert_eq!(Mark::read(&database).unwrap(), None);
    }

    #[test]
    fn that_the_log_is_missing_stays_noted_when_there_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("portico.db");
        std::fs::write(&database, "").unwrap();
        assert_eq!(Mark::before_opening(&database).unwrap(), None);
        let log = beside(&database, "-wal");
        std::fs::write(&log, "").unwrap();
        mark(false).write(&database).unwrap();
        assert_eq!(Mark::before_opening(&database).unwrap(), Some(mark(false)));
        std::fs::remove_file(&log).unwrap();
        assert_eq!(Mark::before_opening(&database).unwrap(), Some(mark(true)));
        std::fs::write(&log, "").unwrap();
        assert_eq!(Mark::before_opening(&database).unwrap(), Some(mark(true)));
    }
}
