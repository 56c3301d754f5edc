//! Target of copies in a SQLite file: writes a new file, which replaces the database at the end.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use portico_kit::platform::OpenOptionsExt;
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use super::backup::{copy_owner, read_identity, remove, remove_copy, replace_database};
use super::lock::{self, FileLock};
use super::mark::{DatabaseIdentity, Mark, sibling};
use super::open_error::OpenError;
use super::statement::{self, StatementBatch};
use super::{failure, files, open};
use crate::checksum;
use crate::copy::{ArchivePart, CopyError, CopyTarget, FinishedCopy, StoreExtent, StoredState};
use crate::identity::Identity;
use crate::key::{Resource, split_path};

/// Target of copies in a SQLite file.
pub struct SqliteTarget {
    database: PathBuf,
    new: PathBuf,
    connection: Option<SqliteConnection>,
    resources: HashMap<Resource, i64>,
    /// Extent of the existing store, from the database or its mark.
    existing: Option<StoreExtent>,
    /// Epoch and revision in the mark of the existing database.
    marked_position: Option<(i64, i64)>,
    /// Identity of the existing database, if it can be read.
    existing_identity: Option<DatabaseIdentity>,
    /// Last revision in the log of the existing database.
    last_logged: i64,
    force: bool,
    /// Locked until the end.
    _lock: FileLock,
}

impl SqliteTarget {
    /// Opens a database file that no process serves and that may be missing. Unless `force` is set, a database with objects is
    /// replaced only if it is the same store. The previous file is saved next to the new one.
    ///
    /// # Errors
    /// [`CopyError`].
    pub async fn open(database: &Path, store_id: &str, force: bool) -> Result<Self, CopyError> {
        let absolute = std::path::absolute(database);
        let path = absolute.map_err(|error| CopyError::File { path: database.to_owned(), error })?;
        let path = files::resolve(&path);
        let lock = lock::acquire(&path).map_err(|error| open_error(&path, error))?;
        let mark = Mark::read(&path).map_err(|error| open_error(&path, error))?;
        let existing_identity = read_identity(&path).await;
        let empty = std::fs::metadata(&path).is_ok_and(|file| file.len() == 0) && mark.is_none();
        if existing_identity.is_none() && !empty && !force {
            let reason =
                "the existing file is unreadable: --force replaces the file and keeps a copy".to_owned();
            return Err(CopyError::Store { place: path.display().to_string(), reason });
        }
        let marked_position = mark.as_ref().map(|mark| (mark.epoch, mark.revision));
        let marked = mark.map(|mark| (mark.store_id, mark.epoch, mark.revision));
        let identified =
            existing_identity.as_ref().map(|found| (found.store_id.clone(), found.epoch, found.revision));
        let newest =
            [marked, identified].into_iter().flatten().reduce(|a, b| (b.0, a.1.max(b.1), a.2.max(b.2)));
        let existing = newest.map(|(store_id, epoch, revision)| StoreExtent {
            identity: Identity { store_id, epoch },
            revision,
            oldest: 0,
        });
        if let Some(other) = existing.as_ref().filter(|store| !force && store.identity.store_id != store_id) {
            let (store_id, revision) = (other.identity.store_id.clone(), other.revision);
            return Err(CopyError::NotEmpty { place: path.display().to_string(), store_id, revision });
        }
        let last_logged = match &existing_identity {
            Some(_) => last_logged_revision(&path).await.map_err(|error| CopyError::Store {
                place: path.display().to_string(),
                reason: failure::reason(&error).to_owned(),
            })?,
            None => 0,
        };
        let new = sibling(&path, ".restoring");
        let mut target = Self {
            database: path,
            new,
            connection: None,
            resources: HashMap::new(),
            existing,
            marked_position,
            last_logged,
            existing_identity,
            force,
            _lock: lock,
        };
        target.begin().await?;
        Ok(target)
    }

    /// Creates the new file. It is useless until it is complete, so nothing is synced before.
    async fn begin(&mut self) -> Result<(), CopyError> {
        for file in [self.new.clone(), sibling(&self.new, "-journal")] {
            remove(&file).map_err(|error| self.store_error(error.to_string()))?;
        }
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.new);
        created.map_err(|error| CopyError::File { path: self.new.clone(), error })?;
        let connected = open::file_options(&self.new).connect().await;
        let mut connection = connected.map_err(|error| self.database_error(&error))?;
        let pragmas =
            "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;";
        sqlx::raw_sql(pragmas).execute(&mut connection).await.map_err(|error| self.database_error(&error))?;
        let migrated = open::migrate(&mut connection, &self.new).await;
        self.connection = Some(connection);
        migrated.map_err(|error| self.store_error(error.to_string()))
    }

    fn store_error(&self, reason: String) -> CopyError {
        CopyError::Store { place: self.database.display().to_string(), reason }
    }

    pub(super) fn database_error(&self, error: &sqlx::Error) -> CopyError {
        tracing::debug!(error = failure::log_text(error), "cannot write to the target database");
        CopyError::Store { place: self.new.display().to_string(), reason: failure::reason(error).to_owned() }
    }

    pub(super) async fn run(&mut self, batch: StatementBatch) -> Result<(), CopyError> {
        let Some(connection) = &mut self.connection else {
            return Err(self.store_error("the target is closed".to_owned()));
        };
        let result = batch.fetch(connection).await.map(drop);
        if result.is_err() {
            statement::rollback(connection).await;
        }
        result.map_err(|error| self.database_error(&error))
    }

    async fn write(&mut self, states: Vec<StoredState>, replace: bool) -> Result<(), CopyError> {
        let batch = self.batch(&states, replace).map_err(|error| self.database_error(&error))?;
        self.run(batch).await
    }

    fn batch(&mut self, states: &[StoredState], replace: bool) -> Result<StatementBatch, sqlx::Error> {
        let mut batch = StatementBatch::default();
        batch.statement("BEGIN IMMEDIATE");
        for state in states {
            self.resource_id(&mut batch, state.key.resource())?;
        }
        let ids = &self.resources;
        let bind_key = |batch: &mut StatementBatch, state: &StoredState| {
            let (namespace, name) = split_path(state.key.path());
            batch.bind(ids.get(state.key.resource()).copied())?;
            batch.bind(namespace.to_owned())?;
            batch.bind(name.to_owned())
        };
        let head = "INSERT INTO log (resource, namespace, name, revision, uid, previous, deleted, value, checksum) VALUES ";
        batch.rows(head, "(?,?,?,?,?,?,?,?,?)", "", states, |batch, state| {
            bind_key(batch, state)?;
            batch.bind(state.revision)?;
            batch.bind(state.uid.clone())?;
            batch.bind(state.previous)?;
            batch.bind(i64::from(state.deleted))?;
            batch.bind(state.value.clone())?;
            batch.bind(checksum::compute_checksum(&state.key, state.revision, &state.value))
        })?;
        // Only the last of several states of an object has owners.
        let last: HashMap<_, _> = states.iter().map(|state| (&state.key, state)).collect();
        if replace {
            let replaced: Vec<&StoredState> = last.values().copied().collect();
            let head = "DELETE FROM owner WHERE (resource, namespace, name) IN (VALUES ";
            batch.rows(head, "(?,?,?)", ")", &replaced, |batch, state| bind_key(batch, state))?;
        }
        let owners: Vec<(&StoredState, String)> = last
            .into_values()
            .flat_map(|state| state.owners.iter().flatten().map(move |owner| (state, owner.clone())))
            .collect();
        let head = "INSERT OR IGNORE INTO owner (resource, namespace, name, owner_uid) VALUES ";
        batch.rows(head, "(?,?,?,?)", "", &owners, |batch, (state, owner)| {
            bind_key(batch, state)?;
            batch.bind(owner.clone())
        })?;
        batch.statement("COMMIT");
        Ok(batch)
    }

    /// Returns the ID of a resource, and inserts its row at the first use.
    pub(super) fn resource_id(
        &mut self,
        batch: &mut StatementBatch,
        resource: &Resource,
    ) -> Result<i64, sqlx::Error> {
        if let Some(id) = self.resources.get(resource) {
            return Ok(*id);
        }
        let next = self.resources.len() as i64 + 1;
        self.resources.insert(resource.clone(), next);
        batch.statement("INSERT INTO resource (id, api_group, resource) VALUES (?, ?, ?)");
        batch.bind(next)?;
        batch.bind(resource.group.clone())?;
        batch.bind(resource.resource.clone())?;
        Ok(next)
    }

    async fn end(mut self: Box<Self>, new_extent: StoreExtent) -> Result<FinishedCopy, CopyError> {
        let StoreExtent { identity, revision, oldest } = new_extent.clone();
        let insert = || -> Result<StatementBatch, sqlx::Error> {
            let mut batch = StatementBatch::default();
            batch.statement(
                "INSERT INTO meta (id, store_id, epoch, revision, compacted) VALUES (1, ?, ?, ?, ?)",
            );
            batch.bind(identity.store_id.clone())?;
            batch.bind(identity.epoch)?;
            batch.bind(revision)?;
            batch.bind(oldest)?;
            Ok(batch)
        };
        let batch = insert().map_err(|error| self.database_error(&error))?;
        self.run(batch).await?;
        if let Some(connection) = self.connection.take() {
            connection.close().await.map_err(|error| self.database_error(&error))?;
        }
        copy_owner(&self.new, &self.database).map_err(|error| self.store_error(error.to_string()))?;
        // The mark is written first, so that a database left by a crash during the next steps is rejected and not served.
        let mark = Mark::new(identity.store_id, identity.epoch, revision, false);
        mark.write(&self.database).map_err(|error| self.store_error(error.to_string()))?;
        let saved_to = replace_database(
            &self.new,
            &self.database,
            self.existing_identity.as_ref().map(|found| found.epoch),
        )
        .await;
        let saved_to = saved_to.map_err(|error| self.store_error(error.to_string()))?;
        Ok(FinishedCopy { extent: new_extent, saved_to: saved_to.map(|path| path.display().to_string()) })
    }
}

/// Returns the last revision in the log of a database.
async fn last_logged_revision(path: &Path) -> Result<i64, sqlx::Error> {
    let mut connection = open::foreign_reader_options(path).connect().await?;
    let last =
        sqlx::query_scalar("SELECT coalesce(max(revision), 0) FROM log").fetch_one(&mut connection).await;
    connection.close().await?;
    last
}

/// Converts the error of opening an existing database.
fn open_error(path: &Path, error: OpenError) -> CopyError {
    let place = path.display().to_string();
    match error {
        OpenError::InUse { pid, .. } => CopyError::InUse { place, by: format!("process {pid}") },
        OpenError::File { path, error } => CopyError::File { path, error },
        error => CopyError::Store { place, reason: error.to_string() },
    }
}

impl Drop for SqliteTarget {
    /// Removes the new file if it did not replace the database.
    fn drop(&mut self) {
        if self.new.exists() {
            remove_copy(&self.new);
        }
    }
}

impl CopyTarget for SqliteTarget {
    fn existing(&self) -> Option<&StoreExtent> {
        self.existing.as_ref()
    }

    /// Compares with the database as well as the mark: a copy that was killed before its end may have written the mark. A
    /// migration from etcd begins at a revision above the source, so the log is compared, too.
    fn is_newer_than(&self, source: &StoreExtent, max_drift: i64) -> bool {
        let StoreExtent { identity, revision, .. } = source;
        if self.existing.as_ref().is_none_or(|existing| existing.identity.store_id != identity.store_id) {
            return false;
        }
        let last = (identity.epoch, revision.saturating_add(max_drift));
        let is_marked =
            self.marked_position.is_some_and(|position| position.0 == identity.epoch && position > last);
        let found = self.existing_identity.as_ref();
        is_marked
            || found.is_some_and(|found| {
                (found.epoch, found.revision) > last
                    || found.epoch == identity.epoch && self.last_logged > *revision
            })
    }

    fn allows_data_loss(&self) -> bool {
        self.force
    }

    fn add(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(self.write(states, false))
    }

    fn follow(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(self.write(states, true))
    }

    fn has_archive(&self) -> bool {
        true
    }

    fn archive(&mut self, part: ArchivePart) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(self.write_archive(part))
    }

    fn finish(
        self: Box<Self>,
        new_extent: StoreExtent,
    ) -> BoxFuture<'static, Result<FinishedCopy, CopyError>> {
        Box::pin(self.end(new_extent))
    }
}
