//! Records the head of the database in the data folder, so that the next start detects a database that lost
//! writes in the meantime, by a failover to an asynchronous standby or a restore. Such a start begins a new epoch.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portico_gostd::{json, os};
use portico_kit::{atomic_file, tasks};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use tokio::sync::watch;
use tokio::time::timeout;

use super::epoch;
use super::meta::{Meta, meta};
use super::session::{BEGIN, run};
use super::settings::PostgresSettings;
use crate::identity::Identity;
use crate::settings::Settings;

/// Minimum interval between two writes of the file.
const MIN_WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// Revision of the head of the database, and its commit ID.
pub(super) type HeadPosition = (i64, i64);

/// Content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HighWater {
    store_id: String,
    epoch: i64,
    revision: i64,
    commit_id: i64,
}

/// Record of the last run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HighWaterRecord {
    Missing,
    /// The file at this path is damaged.
    Damaged(PathBuf),
    Present(HighWater),
}

impl HighWater {
    fn new(identity: &Identity, (revision, commit_id): HeadPosition) -> Self {
        Self { store_id: identity.store_id.clone(), epoch: identity.epoch, revision, commit_id }
    }

    /// Returns true if a database of the same store no longer has this revision, or has another commit at it.
    async fn is_lost(&self, connection: &mut PgConnection, meta: &Meta) -> Result<bool, sqlx::Error> {
        // States that were copied from another database have no commit ID.
        const COMMIT: &str = "SELECT commit_id FROM log WHERE revision = $1 AND commit_id <> 0";
        let Identity { store_id, epoch } = &meta.identity;
        if *store_id != self.store_id || *epoch > self.epoch {
            return Ok(false);
        }
        if (*epoch, meta.revision) < (self.epoch, self.revision) {
            return Ok(true);
        }
        let found = sqlx::query_scalar(COMMIT).bind(self.revision).fetch_optional(connection).await?;
        Ok(self.commit_id != 0 && found.is_some_and(|found: i64| found != self.commit_id))
    }

    /// Replaces a damaged file by a record of a revision that the database does not have. Returns `None` if the file cannot be
    /// replaced: each start would otherwise begin a new epoch.
    async fn replace_damaged(path: &Path, found: &Meta) -> Option<Self> {
        let replacement = Self::new(&found.identity, (found.revision.saturating_add(1), 0));
        let (record, file) = (replacement.clone(), path.to_owned());
        let result = tasks::blocking(move || record.write(&file)).await?;
        let Err(error) = result else { return Some(replacement) };
        tracing::error!(
            path = %path.display(),
            error = os::error_text(&error),
            "cannot replace the damaged mark file, lost writes are not detected"
        );
        None
    }

    /// Replaces the file, unless it records a later revision of the same store. Blocks.
    fn write(&self, path: &Path) -> io::Result<()> {
        if let HighWaterRecord::Present(existing) = HighWaterRecord::parse(path)?
            && existing.store_id == self.store_id
            && (existing.epoch, existing.revision) > (self.epoch, self.revision)
        {
            return Ok(());
        }
        atomic_file::write(path, &serde_json::to_vec(self)?, atomic_file::PRIVATE_MODE)
    }
}

impl HighWaterRecord {
    /// Reads the file.
    pub(super) async fn read(path: PathBuf) -> io::Result<Self> {
        let result = tasks::blocking(move || Self::parse(&path)).await;
        result.unwrap_or_else(|| Err(io::ErrorKind::Interrupted.into()))
    }

    /// Reads the file. Blocks.
    fn parse(path: &Path) -> io::Result<Self> {
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Missing),
            read => read?,
        };
        Ok(serde_json::from_slice(&bytes).map_or_else(
            |error| {
                tracing::error!(
                    path = %path.display(),
                    error = json::error_text(&error),
                    "mark file of the database is damaged"
                );
                Self::Damaged(path.to_owned())
            },
            Self::Present,
        ))
    }

    /// Begins a new epoch if the database has lost the recorded revision, or if the record is damaged, so that a loss cannot be
    /// excluded, and can be replaced. A transaction is open before and after the call.
    pub(super) async fn begin_epoch_if_lost(
        &self,
        connection: &mut PgConnection,
        settings: &PostgresSettings,
        mut found: Meta,
    ) -> Result<Meta, sqlx::Error> {
        let recorded = match self {
            Self::Missing => return Ok(found),
            Self::Damaged(path) => match HighWater::replace_damaged(path, &found).await {
                Some(replacement) => replacement,
                None => return Ok(found),
            },
            Self::Present(recorded) => recorded.clone(),
        };
        while recorded.is_lost(connection, &found).await? {
            let position = (recorded.epoch, recorded.revision);
            let started = epoch::begin(connection, found.identity.epoch, position).await?;
            run(connection, settings.commit_sql()).await?;
            if let Some((epoch, revision)) = started {
                tracing::error!(
                    found = found.revision,
                    recorded = recorded.revision,
                    epoch,
                    revision,
                    "database may have lost acknowledged writes, starting a new epoch"
                );
            }
            run(connection, BEGIN).await?;
            found = meta(connection).await?;
        }
        Ok(found)
    }
}

/// Returns the path of the file; `None` for a store without a data folder.
pub(super) fn path(settings: &Settings) -> Option<PathBuf> {
    let has_folder = !settings.path.as_os_str().is_empty();
    has_folder.then(|| settings.path.with_file_name("postgres.mark"))
}

/// Keeps the file at most [`MIN_WRITE_INTERVAL`] behind the writer, and writes it a last time after the sender is dropped.
pub(super) async fn record_heads(
    path: PathBuf,
    identity: Identity,
    mut heads: watch::Receiver<HeadPosition>,
) {
    let (mut written, mut failed, mut ended) = (None, false, false);
    loop {
        let head = *heads.borrow();
        if written != Some(head) {
            let (high_water, file) = (HighWater::new(&identity, head), path.clone());
            let result = tasks::blocking(move || high_water.write(&file)).await;
            if let Some(Err(error)) = &result
                && !failed
            {
                let error = os::error_text(error);
                tracing::warn!(
                    path = %path.display(),
                    error,
                    "cannot write the mark file of the database, retrying"
                );
            }
            failed = !matches!(result, Some(Ok(())));
            written = (!failed).then_some(head);
        }
        if ended {
            return;
        }
        ended = timeout(MIN_WRITE_INTERVAL, heads.wait_for(|_| false)).await.is_ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn high_water(store: &str, epoch: i64, revision: i64) -> HighWater {
        HighWater::new(&Identity { store_id: store.to_owned(), epoch }, (revision, 7))
    }

    #[tokio::test]
    async fn a_damaged_record_counts_as_a_lost_revision_if_it_can_be_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity { store_id: "a".to_owned(), epoch: 3 };
        let found = Meta { identity, revision: 7, compacted: 0, gc_revision: 0, head_commit_id: 0 };
        let path = folder.path().join("postgres.mark");
        std::fs::write(&path, "{").unwrap();
        assert_eq!(HighWaterRecord::parse(&path).unwrap(), HighWaterRecord::Damaged(path.clone()));
        let replacement = HighWater::replace_damaged(&path, &found).await.unwrap();
        assert_eq!((replacement.epoch, replacement.revision), (3, 8));
        assert_eq!(HighWaterRecord::parse(&path).unwrap(), HighWaterRecord::Present(replacement));
        let missing = folder.path().join("missing/postgres.mark");
        assert_eq!(HighWater::replace_damaged(&missing, &found).await, None);
    }

    #[test]
    fn the_recorded_revision_of_a_store_never_decreases() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("postgres.mark");
        let mut expected = HighWaterRecord::Missing;
        for (mark, is_written) in [
            (high_water("a", 1, 5), true),
            (high_water("a", 1, 4), false),
            (high_water("a", 2, 3), true),
            (high_water("a", 1, 9), false),
            (high_water("b", 1, 1), true),
        ] {
            assert_eq!(HighWaterRecord::parse(&path).unwrap(), expected);
            mark.write(&path).unwrap();
            expected = if is_written { HighWaterRecord::Present(mark) } else { expected };
        }
        assert_eq!(HighWaterRecord::parse(&path).unwrap(), expected);
    }
}
