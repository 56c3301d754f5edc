//! Target of copies in a SQLite file: writes a new file, which replaces the database at the end.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use portico_kit::platform::OpenOptionsExt;
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use super::backup::{exchange, known, own, remove, remove_copy};
use super::lock::{self, FileLock};
use super::mark::{Found, Mark, beside};
use super::open_error::OpenError;
use super::statement::{self, Batch};
use super::{failure, files, open};
use crate::checksum;
use crate::copy::{ArchivePart, CopyError, CopyTarget, Extent, Finished, StoredState};
use crate::identity::Identity;
use crate::key::{Resource, split_path};

/// Target of copies in a SQLite file.
pub struct SqliteTarget {
    database: PathBuf,
    new: PathBuf,
    connection: Option<SqliteConnection>,
    resources: HashMap<Resource, i64>,
    /// Extent of the existing store, from the database or its mark.
    there: Option<Extent>,
    /// Epoch and revision in the mark of the existing database.
    marked: Option<(i64, i64)>,
    /// Identity of the existing database, if it can be read.
    found: Option<Found>,
    /// Last revision in the log of the existing database.
    written: i64,
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
        let lock = lock::acquire(&path).map_err(|error| unopened(&path, error))?;
        let mark = Mark::read(&path).map_err(|error| unopened(&path, error))?;
        let found = known(&path).await;
        let empty = std::fs::metadata(&path).is_ok_and(|file| file.len() == 0) && mark.is_none();
        if found.is_none() && !empty && !force {
            let reason =
                "the existing file is unreadable: --force replaces the file and keeps a copy".to_owned();
            return Err(CopyError::Store { place: path.display().to_string(), reason });
        }
        let marked = mark.as_ref().map(|mark| (mark.epoch, mark.revision));
        let of_mark = mark.map(|mark| (mark.store_id, mark.epoch, mark.revision));
        let of_found = found.as_ref().map(|found| (found.store_id.clone(), found.epoch, found.revision));
        let there =
            [of_mark, of_found].into_iter().flatten().reduce(|a, b| (b.0, a.1.max(b.1), a.2.max(b.2)));
        let there = there.map(|(store_id, epoch, revision)| Extent {
            identity: Identity { store_id, epoch },
            revision,
            oldest: 0,
        });
        if let Some(there) = there.as_ref().filter(|there| !force && there.identity.store_id != store_id) {
            let (store_id, revision) = (there.identity.store_id.clone(), there.revision);
            return Err(CopyError::NotEmpty { place: path.display().to_string(), store_id, revision });
        }
        let written = match &found {
            Some(_) => last_written(&path).await.map_err(|error| CopyError::Store {
                place: path.display().to_string(),
                reason: failure::reason(&error).to_owned(),
            })?,
            None => 0,
        };
        let new = beside(&path, ".restoring");
        let mut target = Self {
            database: path,
            new,
            connection: None,
            resources: HashMap::new(),
            there,
            marked,
            written,
            found,
            force,
            _lock: lock,
        };
        target.begin().await?;
        Ok(target)
    }

    /// Creates the new file. It is useless until it is complete, so nothing is synced before.
    async fn begin(&mut self) -> Result<(), CopyError> {
        for file in [self.new.clone(), beside(&self.new, "-journal")] {
            remove(&file).map_err(|error| self.store(error.to_string()))?;
        }
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.new);
        made.map_err(|error| CopyError::File { path: self.new.clone(), error })?;
        let connected = open::file_options(&self.new).connect().await;
        let mut connection = connected.map_err(|error| self.failed(&error))?;
        let pragmas =
            "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;";
        sqlx::raw_sql(pragmas).execute(&mut connection).await.map_err(|error| self.failed(&error))?;
        let migrated = open::migrate(&mut connection, &self.new).await;
        self.connection = Some(connection);
        migrated.map_err(|error| self.store(error.to_string()))
    }

    fn store(&self, reason: String) -> CopyError {
        CopyError::Store { place: self.database.display().to_string(), reason }
    }

    pub(super) fn failed(&self, error: &sqlx::Error) -> CopyError {
        tracing::debug!(error = failure::logged(error), "cannot write to the target database");
        CopyError::Store { place: self.new.display().to_string(), reason: failure::reason(error).to_owned() }
    }

    pub(super) async fn run(&mut self, batch: Batch) -> Result<(), CopyError> {
        let Some(connection) = &mut self.connection else {
            return Err(self.store("the target is closed".to_owned()));
        };
        let done = batch.fetch(connection).await.map(drop);
        if done.is_err() {
            statement::rollback(connection).await;
        }
        done.map_err(|error| self.failed(&error))
    }

    async fn write(&mut self, states: Vec<StoredState>, replace: bool) -> Result<(), CopyError> {
        let batch = self.batch(&states, replace).map_err(|error| self.failed(&error))?;
        self.run(batch).await
    }

    fn batch(&mut self, states: &[StoredState], replace: bool) -> Result<Batch, sqlx::Error> {
        let mut batch = Batch::default();
        batch.statement("BEGIN IMMEDIATE");
        for state in states {
            self.number(&mut batch, state.key.resource())?;
        }
        let ids = &self.resources;
        let bind_key = |batch: &mut Batch, state: &StoredState| {
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
            batch.bind(checksum::of_stored(&state.key, state.revision, &state.value))
        })?;
        // Only the last of several states of an object has owners.
        let last: HashMap<_, _> = states.iter().map(|state| (&state.key, state)).collect();
        if replace {
            let gone: Vec<&StoredState> = last.values().copied().collect();
            let head = "DELETE FROM owner WHERE (resource, namespace, name) IN (VALUES ";
            batch.rows(head, "(?,?,?)", ")", &gone, |batch, state| bind_key(batch, state))?;
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
    pub(super) fn number(&mut self, batch: &mut Batch, resource: &Resource) -> Result<i64, sqlx::Error> {
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

    async fn end(mut self: Box<Self>, becomes: Extent) -> Result<Finished, CopyError> {
        let Extent { identity, revision, oldest } = becomes.clone();
        let insert = || -> Result<Batch, sqlx::Error> {
            let mut batch = Batch::default();
            batch.statement(
                "INSERT INTO meta (id, store_id, epoch, revision, compacted) VALUES (1, ?, ?, ?, ?)",
            );
            batch.bind(identity.store_id.clone())?;
            batch.bind(identity.epoch)?;
            batch.bind(revision)?;
            batch.bind(oldest)?;
            Ok(batch)
        };
        let batch = insert().map_err(|error| self.failed(&error))?;
        self.run(batch).await?;
        if let Some(connection) = self.connection.take() {
            connection.close().await.map_err(|error| self.failed(&error))?;
        }
        own(&self.new, &self.database).map_err(|error| self.store(error.to_string()))?;
        // The mark is written first, so that a database left by a crash during the next steps is rejected and not served.
        let mark = Mark::new(identity.store_id, identity.epoch, revision, false);
        mark.write(&self.database).map_err(|error| self.store(error.to_string()))?;
        let kept = exchange(&self.new, &self.database, self.found.as_ref().map(|found| found.epoch)).await;
        let kept = kept.map_err(|error| self.store(error.to_string()))?;
        Ok(Finished { extent: becomes, kept: kept.map(|path| path.display().to_string()) })
    }
}

/// Returns the last revision in the log of a database.
async fn last_written(path: &Path) -> Result<i64, sqlx::Error> {
    let mut connection = open::onlooker_options(path).connect().await?;
    let last =
        sqlx::query_scalar("SELECT coalesce(max(revision), 0) FROM log").fetch_one(&mut connection).await;
    connection.close().await?;
    last
}

/// Converts the error of opening an existing database.
fn unopened(path: &Path, error: OpenError) -> CopyError {
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
    fn replaces(&self) -> Option<&Extent> {
        self.there.as_ref()
    }

    /// Compares with the database as well as the mark: a copy that was killed before its end may have written the mark. A
    /// migration from etcd begins at a revision above the source, so the log is compared, too.
    fn has_more_than(&self, source: &Extent, moves_on_by: i64) -> bool {
        let Extent { identity, revision, .. } = source;
        if self.there.as_ref().is_none_or(|there| there.identity.store_id != identity.store_id) {
            return false;
        }
        let last = (identity.epoch, revision.saturating_add(moves_on_by));
        let is_marked = self.marked.is_some_and(|marked| marked.0 == identity.epoch && marked > last);
        let found = self.found.as_ref();
        is_marked
            || found.is_some_and(|found| {
                (found.epoch, found.revision) > last
                    || found.epoch == identity.epoch && self.written > *revision
            })
    }

    fn may_lose(&self) -> bool {
        self.force
    }

    fn add(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(self.write(states, false))
    }

    fn follow(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(self.write(states, true))
    }

    fn keeps_archive(&self) -> bool {
        true
    }

    fn archive(&mut self, part: ArchivePart) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(self.write_archive(part))
    }

    fn finish(self: Box<Self>, becomes: Extent) -> BoxFuture<'static, Result<Finished, CopyError>> {
        Box::pin(self.end(becomes))
    }
}
