//! Examines a database that may be damaged: reports of SQLite about the file, unreadable values, and inconsistencies.
//!
//! Reading is possible while a process serves the database; removing needs exclusive access.

mod checks;
mod finding;
mod salvage;

pub use finding::{Examination, Finding};
pub use salvage::ExportSummary;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::TryStreamExt;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row, SqliteConnection};

use super::epoch::DEFAULT_REVISION_BUMP;
use super::mark::{self, Mark, Verdict};
use super::open;
use super::open_error::OpenError;
use super::{epoch, files, lock, row};
use crate::decode::{DecodeError, Decoder};
use crate::identity::Identity;
use crate::index::Indexer;
use crate::record::Record;
use crate::seal::Seal;
use crate::unreadable::Unreadable;

/// Examination of one database.
pub struct Doctor<'a> {
    database: PathBuf,
    indexer: &'a dyn Indexer,
    seal: Arc<Seal>,
    /// True if the keys of sealed values are available.
    has_keys: bool,
}

/// Returns a query for each row of the log with its resource, and a flag for the last state of each object; in key order.
fn rows_of_log(checksum: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!(
        "SELECT r.api_group, r.resource, l.namespace, l.name, l.revision, l.value, l.uid, l.deleted, \
         l.revision = (SELECT max(n.revision) FROM log n WHERE n.resource = l.resource AND n.namespace = l.namespace \
         AND n.name = l.name), {checksum} AS checksum FROM log l JOIN resource r ON r.id = l.resource \
         ORDER BY r.api_group, r.resource, l.namespace, l.name, l.revision"
    ))
}

/// Returns a query for each row of the archive in the same form; none of them is the last state of an object.
fn rows_of_archive(checksum: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!(
        "SELECT r.api_group, r.resource, a.namespace, a.name, a.revision, a.value, '', a.deleted, 0, \
         {checksum} AS checksum FROM archive a JOIN resource r ON r.id = a.resource ORDER BY a.revision"
    ))
}

/// Row of the log or the archive.
struct ExaminedRow {
    state: Result<Record, Unreadable>,
    /// True if this is the current state of the object; false for past states and tombstones.
    is_current: bool,
}

impl<'a> Doctor<'a> {
    /// Examines this database file; the indexer decides which values are readable. Sealed values are not opened.
    pub fn new(database: impl Into<PathBuf>, indexer: &'a dyn Indexer) -> Self {
        Self { database: files::resolve(&database.into()), indexer, seal: Seal::none(), has_keys: false }
    }

    /// Opens sealed values: those that cannot be opened count as unreadable.
    #[must_use]
    pub fn with_seal(self, seal: Arc<Seal>) -> Self {
        Self { seal, has_keys: true, ..self }
    }

    /// Examines the database without writing to it.
    ///
    /// # Errors
    /// [`OpenError`] if there is nothing to examine.
    pub async fn examine(&self) -> Result<Examination, OpenError> {
        let mut connection = self.connect(true).await?;
        let mut examination = Examination::default();
        // One transaction, so that all checks read the same state.
        self.run(&mut connection, "BEGIN").await?;
        checks::integrity(&mut connection, &mut examination).await;
        let found = open::read_identity(&mut connection, &self.database).await;
        match found {
            Err(OpenError::Database { error, .. }) => examination.damaged(&error),
            Err(error) => return Err(error),
            Ok(None) => examination.findings.push(Finding::Inconsistent("no store found".to_owned())),
            Ok(Some(found)) => {
                examination.revision = found.revision;
                checks::check_mark(Mark::read(&self.database)?.as_ref(), &found, &mut examination);
                for examined in [
                    self.examine_rows(&mut connection, &mut examination).await,
                    self.examine_archive(&mut connection, &mut examination).await,
                ] {
                    match examined {
                        Ok(()) => {}
                        Err(DecodeError::Database(error)) => examination.damaged(&error),
                        Err(error) => return Err(self.open_error(error)),
                    }
                }
                checks::check_consistency(&mut connection, &mut examination).await;
            }
        }
        self.close(connection).await?;
        Ok(examination)
    }

    async fn examine_rows(
        &self,
        connection: &mut SqliteConnection,
        examination: &mut Examination,
    ) -> Result<(), DecodeError> {
        checks::check_resources(connection, examination).await?;
        let mut owners = checks::OwnerCheck::default();
        let checksum = open::checksum_column(connection).await?;
        let mut rows = sqlx::query(rows_of_log(checksum)).fetch(&mut *connection);
        while let Some(row) = rows.try_next().await? {
            let stored = self.decode_row(&row).await?;
            examination.states += 1;
            match stored.state {
                Err(state) if state.is_sealed() && !self.has_keys => {
                    examination.sealed += 1;
                    examination.objects += u64::from(stored.is_current);
                    owners.add_sealed(&state);
                }
                Ok(record) if stored.is_current => {
                    examination.objects += 1;
                    owners.add(&record);
                }
                Ok(_) => {}
                Err(state) if stored.is_current => examination.findings.push(Finding::Unreadable(state)),
                Err(state) => examination.findings.push(Finding::UnreadableHistory(state)),
            }
        }
        drop(rows);
        Ok(owners.compare(connection, examination).await?)
    }

    /// Examines the archive, if there is one.
    async fn examine_archive(
        &self,
        connection: &mut SqliteConnection,
        examination: &mut Examination,
    ) -> Result<(), DecodeError> {
        if !checks::has_archive(connection).await? {
            return Ok(());
        }
        let checksum = open::checksum_column(connection).await?;
        let mut rows = sqlx::query(rows_of_archive(checksum)).fetch(&mut *connection);
        while let Some(row) = rows.try_next().await? {
            examination.states += 1;
            match self.decode_row(&row).await?.state {
                Err(state) if state.is_sealed() && !self.has_keys => examination.sealed += 1,
                Err(state) => examination.findings.push(Finding::UnreadableHistory(state)),
                Ok(_) => {}
            }
        }
        drop(rows);
        checks::check_archive(connection, examination).await;
        Ok(())
    }

    /// Passes the current state of every readable object to `take`, in key order, followed by states salvaged
    /// from a damaged file.
    ///
    /// # Errors
    /// [`OpenError`]. An error of `take` ends the export.
    pub async fn export(
        &self,
        mut take: impl FnMut(&Record) -> std::io::Result<()>,
    ) -> Result<ExportSummary, OpenError> {
        let mut connection = self.connect(true).await?;
        let (mut summary, mut exported) = (ExportSummary::default(), HashSet::new());
        let mut export_row = |stored: ExaminedRow, summary: &mut ExportSummary| match stored.state {
            Ok(record) if stored.is_current => {
                take(&record).map_err(|error| OpenError::File { path: "the export".into(), error })
            }
            Err(_) if stored.is_current => {
                summary.unreadable += 1;
                Ok(())
            }
            _ => Ok(()),
        };
        let checksum = open::checksum_column(&mut connection).await;
        let checksum = checksum.map_err(|error| self.open_error(error.into()))?;
        let mut rows = sqlx::query(rows_of_log(checksum)).fetch(&mut connection);
        let damage = loop {
            match rows.try_next().await {
                Ok(None) => break None,
                Ok(Some(row)) => {
                    let stored = self.decode_row(&row).await.map_err(|error| self.open_error(error))?;
                    if stored.is_current {
                        let revision = row.try_get_unchecked::<i64, _>(4);
                        exported.insert(revision.map_err(|error| self.open_error(error.into()))?);
                    }
                    export_row(stored, &mut summary)?;
                }
                Err(error) if salvage::is_damage(&error) => break Some(error),
                Err(error) => return Err(self.open_error(error.into())),
            }
        };
        drop(rows);
        if let Some(damage) = damage {
            summary.damage = Some(damage.to_string());
            self.salvage(&mut connection, checksum, &exported, &mut summary, &mut export_row).await?;
        }
        self.close(connection).await?;
        Ok(summary)
    }

    /// Exports the objects of a damaged file that were not exported yet.
    async fn salvage(
        &self,
        connection: &mut SqliteConnection,
        checksum: &str,
        exported: &HashSet<i64>,
        summary: &mut ExportSummary,
        export_row: &mut impl FnMut(ExaminedRow, &mut ExportSummary) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let state = format!(
            "SELECT ?, ?, namespace, name, revision, value, uid, deleted, 1, {checksum} AS checksum \
             FROM log NOT INDEXED WHERE revision = ?"
        );
        let resources = salvage::resources(connection).await;
        let heads = salvage::LastStates::read(connection).await;
        for (resource, revision) in heads.current().filter(|(_, revision)| !exported.contains(revision)) {
            let Some(resource) = resources.get(&resource) else {
                summary.lost += 1;
                continue;
            };
            let select = sqlx::query(AssertSqlSafe(state.clone()))
                .bind(&resource.group)
                .bind(&resource.resource)
                .bind(revision);
            let stored = match select.fetch_optional(&mut *connection).await {
                Ok(Some(row)) => self.decode_row(&row).await,
                Ok(None) => Err(sqlx::Error::RowNotFound.into()),
                Err(error) => Err(error.into()),
            };
            match stored {
                Ok(stored) => export_row(stored, summary)?,
                // The value, or a part of it, is on an unreadable page.
                Err(DecodeError::Database(_)) => summary.lost += 1,
                Err(error) => return Err(self.open_error(error)),
            }
        }
        Ok(())
    }

    /// Removes objects whose current state or resource is unreadable, unreadable past states, and the history of watches: a new
    /// epoch begins. Returns the removed objects. Does nothing if there is nothing to remove.
    ///
    /// # Errors
    /// [`OpenError`]; nothing was removed in this case.
    pub async fn remove_unreadable(&self) -> Result<Vec<Unreadable>, OpenError> {
        let _lock = lock::acquire(&self.database)?;
        let mark = Mark::before_opening(&self.database)?;
        let examination = self.examine().await?;
        let (mut removed, mut removed_data) = (Vec::new(), epoch::RemovedData::default());
        for finding in examination.findings {
            match finding {
                Finding::Unreadable(object) => removed.push(object),
                Finding::UnreadableHistory(state) => removed_data.past_states.push(state.revision()),
                Finding::UnreadableResource { id, .. } => removed_data.resources.push(id),
                Finding::Damaged(_) | Finding::Inconsistent(_) => {}
            }
        }
        if removed.is_empty() && removed_data.resources.is_empty() && removed_data.past_states.is_empty() {
            return Ok(removed);
        }
        removed_data.objects = removed.iter().map(Unreadable::revision).collect();
        let mut connection = self.connect(false).await?;
        match self.begin_epoch(&mut connection, mark.as_ref(), &removed_data).await {
            Ok(()) => self.close(connection).await.map(|()| removed),
            Err(error) => {
                open::close_as_marked(connection, &self.database).await;
                Err(error)
            }
        }
    }

    /// Begins a new epoch without the removed data.
    async fn begin_epoch(
        &self,
        connection: &mut SqliteConnection,
        mark: Option<&Mark>,
        removed_data: &epoch::RemovedData,
    ) -> Result<(), OpenError> {
        self.run(connection, "PRAGMA synchronous = FULL").await?;
        let Some(found) = open::read_identity(connection, &self.database).await? else { return Ok(()) };
        let path = || self.database.clone();
        // A database that was not served here last must not be accepted this way: its revisions would be reused.
        let bump = match mark::compare(mark, Some(&found)) {
            Verdict::Replaced(reason) => return Err(OpenError::Replaced { path: path(), reason }),
            Verdict::LogMissing => DEFAULT_REVISION_BUMP,
            Verdict::Trusted => 1,
        };
        let next = epoch::next_epoch(found.epoch, found.revision, bump);
        let (epoch, revision) = next.ok_or_else(|| OpenError::Exhausted { path: path() })?;
        if let Some(mark) = mark {
            mark.with_epoch_start((epoch, revision)).write(&self.database)?;
        }
        open::migrate(connection, &self.database).await?;
        let result = epoch::begin_with_removals(connection, removed_data, epoch, revision).await;
        result.map_err(|error| OpenError::Database { path: path(), error })?;
        let identity = Identity { store_id: found.store_id, epoch };
        open::mark_of(&identity, revision, false).write(&self.database)
    }

    async fn decode_row(&self, row: &sqlx::sqlite::SqliteRow) -> Result<ExaminedRow, DecodeError> {
        let decoder = Decoder { indexer: self.indexer, seal: &self.seal, skips_unopened: false };
        let resource = row::resource(row, 0)?;
        let (deleted, last): (i64, i64) = (row.try_get_unchecked(7)?, row.try_get_unchecked(8)?);
        let state = match resource {
            Ok(resource) => decoder.decode_row(&resource, row, 2).await?,
            Err(resource) => Err(row::unreadable_of_resource(&resource, row, 2)?),
        };
        let state = match state {
            Err(object) => Err(object.with_uid(row::text(row, 6)?.valid().unwrap_or_default())),
            Ok(record) => Ok(record),
        };
        Ok(ExaminedRow { state, is_current: last == 1 && deleted == 0 })
    }

    fn open_error(&self, error: DecodeError) -> OpenError {
        let path = self.database.clone();
        match error {
            DecodeError::Database(error) => OpenError::Database { path, error },
            DecodeError::Sealed { key, reason } => {
                OpenError::Sealed { path, reason: format!("{key}: {reason}") }
            }
        }
    }

    async fn connect(&self, read_only: bool) -> Result<SqliteConnection, OpenError> {
        let options = if read_only {
            open::foreign_reader_options(&self.database)
        } else {
            open::file_options(&self.database)
        };
        let connected = options.connect().await;
        connected.map_err(|error| OpenError::Database { path: self.database.clone(), error })
    }

    async fn run(&self, connection: &mut SqliteConnection, sql: &'static str) -> Result<(), OpenError> {
        let result = sqlx::query(sql).execute(connection).await.map(drop);
        result.map_err(|error| OpenError::Database { path: self.database.clone(), error })
    }

    async fn close(&self, connection: SqliteConnection) -> Result<(), OpenError> {
        connection.close().await.map_err(|error| OpenError::Database { path: self.database.clone(), error })
    }

    /// Returns the database file.
    pub fn database(&self) -> &Path {
        &self.database
    }
}
