//! Source of copies from a SQLite file: of a store in this process, or of a file that another process serves or that is not
//! in use. Returns values as stored.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions, SqliteRow};
use sqlx::{Row, Sqlite, Transaction};

use super::mark::sibling;
use super::open_error::OpenError;
use super::{failure, files, open, row};
use crate::checksum;
use crate::copy::{
    ArchiveCursor, ArchivePart, Changes, CopyError, CopySource, PAGE_STATES, StoreExtent, StoredState,
    page_end, page_length,
};
use crate::identity::Identity;
use crate::key::{Key, Resource, split_path};
use crate::owner_source::{OwnerSource, owner_source};
use crate::seal::Seal;

/// Source of copies from a SQLite file.
pub struct SqliteSource {
    pool: SqlitePool,
    seal: Arc<Seal>,
    path: PathBuf,
    /// True if the file is read as immutable because no process serves it. A server may still start during the copy.
    is_at_rest: bool,
}

/// States of a resource (`?1`) at a revision (`?2`) after a key (`?3`, `?4`), in key order, limited to `?5`; includes states that
/// were superseded since.
const STATES: &str = "SELECT namespace, name, max(revision) AS revision, deleted FROM log \
    WHERE resource = ?1 AND revision <= ?2 AND (namespace, name) > (?3, ?4) \
    GROUP BY namespace, name HAVING deleted = 0 ORDER BY namespace, name LIMIT ?5";

/// Columns of a row of a page. The last one is true if the state is the current one of its object.
const COLUMNS: &str = "l.namespace, l.name, l.revision, l.uid, l.previous, l.deleted, l.value, NOT EXISTS (SELECT 1 FROM log n \
    WHERE n.resource = l.resource AND n.namespace = l.namespace AND n.name = l.name AND n.revision > l.revision)";

impl SqliteSource {
    /// Opens a file, served or not. Values stay sealed; `seal` is used to read the owners of superseded states.
    ///
    /// # Errors
    /// [`CopyError`].
    pub async fn open(database: &Path, seal: Arc<Seal>) -> Result<Self, CopyError> {
        let path = std::path::absolute(database)
            .map_err(|error| CopyError::File { path: database.to_owned(), error })?;
        let path = files::resolve(&path);
        if !path.exists() {
            return Err(CopyError::Missing(path));
        }
        let is_at_rest = !sibling(&path, "-wal").exists();
        let pool = SqlitePoolOptions::new().max_connections(1).min_connections(0);
        let source = Self {
            pool: pool.connect_lazy_with(open::foreign_reader_options(&path)),
            seal,
            path,
            is_at_rest,
        };
        source.check_schema().await?;
        Ok(source)
    }

    /// Returns the source of a store in this process.
    pub(super) fn from_store(pool: SqlitePool, seal: Arc<Seal>, path: PathBuf) -> Self {
        Self { pool, seal, path, is_at_rest: false }
    }

    async fn check_schema(&self) -> Result<(), CopyError> {
        let mut connection = self.pool.acquire().await.map_err(|error| self.database_error(&error))?;
        let store = |reason: String| CopyError::Store { place: self.place(), reason };
        match open::read_identity(&mut connection, &self.path).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(store("no store found".to_owned())),
            Err(error @ OpenError::TooNew { .. }) => Err(store(error.to_string())),
            Err(OpenError::Database { error, .. }) => Err(self.database_error(&error)),
            Err(error) => Err(store(error.to_string())),
        }
    }

    pub(super) fn place(&self) -> String {
        self.path.display().to_string()
    }

    pub(super) fn database_error(&self, error: &sqlx::Error) -> CopyError {
        tracing::debug!(error = failure::log_text(error), "cannot read from the source database");
        CopyError::Store { place: self.place(), reason: failure::reason(error).to_owned() }
    }

    /// Starts a read transaction. Returns it with the extent of the store.
    pub(super) async fn begin(&self) -> Result<(Transaction<'static, Sqlite>, StoreExtent), CopyError> {
        const META: &str = "SELECT store_id, epoch, revision, compacted FROM meta WHERE id = 1";
        let failed = |error| self.database_error(&error);
        let mut transaction = self.pool.begin().await.map_err(failed)?;
        let row = sqlx::query(META).fetch_one(&mut *transaction).await.map_err(failed)?;
        let extent = || -> Result<StoreExtent, sqlx::Error> {
            let identity = Identity { store_id: row.try_get(0)?, epoch: row.try_get(1)? };
            Ok(StoreExtent { identity, revision: row.try_get(2)?, oldest: row.try_get(3)? })
        };
        let extent = extent().map_err(failed)?;
        Ok((transaction, extent))
    }

    /// Checks after a read that no server has started; otherwise the result is unreliable.
    pub(super) fn check_unserved<T>(&self, result: T) -> Result<T, CopyError> {
        match self.is_at_rest && sibling(&self.path, "-wal").exists() {
            true => Err(CopyError::Served(self.place())),
            false => Ok(result),
        }
    }

    async fn read_extent(&self) -> Result<StoreExtent, CopyError> {
        let (_, extent) = self.begin().await?;
        self.check_unserved(extent)
    }

    async fn read_states(&self, revision: i64, after: Option<&Key>) -> Result<Vec<StoredState>, CopyError> {
        let (mut transaction, extent) = self.begin().await?;
        if revision < extent.oldest {
            return Err(CopyError::Compacted { revision, oldest: extent.oldest });
        }
        let resources = self.resources(&mut transaction).await?;
        let mut states = Vec::new();
        for (resource, id) in resources {
            let page_start = match after {
                Some(after) if *after.resource() > resource => continue,
                Some(after) if *after.resource() == resource => split_path(after.path()),
                _ => ("", ""),
            };
            states = self.page(&mut transaction, &resource, id, revision, page_start).await?;
            if !states.is_empty() {
                break;
            }
        }
        drop(transaction);
        self.check_unserved(states)
    }

    /// Returns all resources in order.
    async fn resources(
        &self,
        transaction: &mut Transaction<'static, Sqlite>,
    ) -> Result<Vec<(Resource, i64)>, CopyError> {
        let select = sqlx::query("SELECT id, api_group, resource FROM resource");
        let rows = select.fetch_all(&mut **transaction).await.map_err(|error| self.database_error(&error))?;
        let mut resources = Vec::with_capacity(rows.len());
        for row in rows {
            let id = row.try_get(0).map_err(|error| self.database_error(&error))?;
            let resource = row::resource(&row, 1).map_err(|error| self.database_error(&error))?;
            let unreadable = |remains: Resource| {
                CopyError::Unreadable(format!("{}: the name of {remains} cannot be read", self.place()))
            };
            resources.push((resource.map_err(unreadable)?, id));
        }
        resources.sort();
        Ok(resources)
    }

    /// Returns the next states of one resource, at most a page.
    async fn page(
        &self,
        transaction: &mut Transaction<'static, Sqlite>,
        resource: &Resource,
        id: i64,
        revision: i64,
        after: (&str, &str),
    ) -> Result<Vec<StoredState>, CopyError> {
        let failed = |error| self.database_error(&error);
        let sizes = format!(
            "SELECT length(l.value) FROM ({STATES}) k CROSS JOIN log l ON l.revision = k.revision \
             ORDER BY k.namespace, k.name"
        );
        let sizes = sqlx::query_scalar(sqlx::AssertSqlSafe(sizes)).bind(id).bind(revision);
        let sizes = sizes.bind(after.0).bind(after.1).bind(PAGE_STATES as i64);
        let sizes: Vec<i64> = sizes.fetch_all(&mut **transaction).await.map_err(failed)?;
        let checksum = open::checksum_column(transaction).await.map_err(failed)?;
        let select = format!(
            "SELECT {COLUMNS}, {checksum} AS checksum FROM ({STATES}) k CROSS JOIN log l ON l.revision = k.revision \
             ORDER BY k.namespace, k.name"
        );
        let select = sqlx::query(sqlx::AssertSqlSafe(select)).bind(id).bind(revision);
        let select = select.bind(after.0).bind(after.1).bind(page_length(&sizes));
        let rows = select.fetch_all(&mut **transaction).await.map_err(failed)?;
        let mut states = Vec::with_capacity(rows.len());
        for row in &rows {
            states.push(self.state(resource, row, 0).await?);
        }
        self.owners(transaction, states).await
    }

    async fn read_changes(&self, after: i64) -> Result<Changes, CopyError> {
        const SIZES: &str =
            "SELECT revision, length(value) FROM log WHERE revision > ? ORDER BY revision LIMIT ?";
        let failed = |error| self.database_error(&error);
        let (mut transaction, extent) = self.begin().await?;
        if after < extent.oldest {
            return Err(CopyError::Compacted { revision: after, oldest: extent.oldest });
        }
        let sizes = sqlx::query_as(SIZES).bind(after).bind(PAGE_STATES as i64);
        let sizes: Vec<(i64, i64)> = sizes.fetch_all(&mut *transaction).await.map_err(failed)?;
        let until = page_end(&sizes, extent.revision);
        let checksum = open::checksum_column(&mut transaction).await.map_err(failed)?;
        let select = format!(
            "SELECT {COLUMNS}, r.api_group, r.resource, {checksum} AS checksum FROM log l LEFT JOIN resource r ON r.id = l.resource \
             WHERE l.revision > ? AND l.revision <= ? ORDER BY l.revision"
        );
        let select = sqlx::query(sqlx::AssertSqlSafe(select)).bind(after).bind(until);
        let rows = select.fetch_all(&mut *transaction).await.map_err(failed)?;
        let mut states = Vec::with_capacity(rows.len());
        for row in &rows {
            let resource = row::resource(row, 8).map_err(failed)?;
            let unreadable = |remains| {
                CopyError::Unreadable(format!("{}: the name of {remains} cannot be read", self.place()))
            };
            states.push(self.state(&resource.map_err(unreadable)?, row, 0).await?);
        }
        let states = self.owners(&mut transaction, states).await?;
        drop(transaction);
        self.check_unserved(Changes { states, until, revision: extent.revision })
    }

    /// Returns a state from the columns of [`COLUMNS`], and the source of its owners.
    async fn state(
        &self,
        resource: &Resource,
        row: &SqliteRow,
        first_column: usize,
    ) -> Result<(StoredState, OwnerSource), CopyError> {
        let failed = |error| self.database_error(&error);
        let key = match row::key(resource, row, first_column).map_err(failed)? {
            Ok(key) => key,
            Err(damaged) => {
                return Err(CopyError::Unreadable(format!("{}: {}", damaged.remains, damaged.reason())));
            }
        };
        let uid = row::text(row, first_column + 3).map_err(failed)?.into_display().into_owned();
        let read = || -> Result<StoredState, sqlx::Error> {
            Ok(StoredState {
                revision: row.try_get(first_column + 2)?,
                uid,
                previous: row.try_get(first_column + 4)?,
                deleted: row.try_get::<i64, _>(first_column + 5)? != 0,
                value: row.try_get(first_column + 6)?,
                owners: None,
                key,
            })
        };
        let state = read().map_err(failed)?;
        let checksum = row::checksum(row, "checksum").map_err(failed)?;
        checksum::verify_copied(&state.key, state.revision, &state.value, checksum)?;
        let is_current: bool = row.try_get(first_column + 7).map_err(failed)?;
        let owners = owner_source(&self.seal, &state, is_current).await;
        Ok((state, owners))
    }

    /// Adds the owners to states: from the index for current states with sealed values.
    async fn owners(
        &self,
        transaction: &mut Transaction<'static, Sqlite>,
        states: Vec<(StoredState, OwnerSource)>,
    ) -> Result<Vec<StoredState>, CopyError> {
        const SELECT: &str = "SELECT r.api_group, r.resource, o.namespace, o.name, o.owner_uid FROM owner o \
            JOIN resource r ON r.id = o.resource WHERE (r.resource, o.namespace, o.name) IN \
            (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))";
        let failed = |error| self.database_error(&error);
        let keys: Vec<_> = states
            .iter()
            .filter(|(_, owners)| matches!(owners, OwnerSource::Indexed))
            .map(|(state, _)| {
                let (namespace, name) = split_path(state.key.path());
                [&*state.key.resource().resource, namespace, name]
            })
            .collect();
        let mut indexed = Vec::new();
        if !keys.is_empty() {
            // Texts always encode.
            let keys = serde_json::to_string(&keys).unwrap_or_default();
            let rows = sqlx::query(SELECT).bind(keys).fetch_all(&mut **transaction).await.map_err(failed)?;
            for row in &rows {
                let text = |column| row.try_get::<String, _>(column).map_err(failed);
                let resource = Resource::new(text(0)?, text(1)?);
                let key = Key::new(&resource, text(2)?.trim_end_matches('/'), &text(3)?);
                indexed.push((key, text(4)?));
            }
        }
        Ok(crate::owner_source::join_indexed(states, &indexed))
    }
}

impl CopySource for SqliteSource {
    fn extent(&self) -> BoxFuture<'_, Result<StoreExtent, CopyError>> {
        Box::pin(self.read_extent())
    }

    fn states<'a>(
        &'a self,
        revision: i64,
        after: Option<&'a Key>,
    ) -> BoxFuture<'a, Result<Vec<StoredState>, CopyError>> {
        Box::pin(self.read_states(revision, after))
    }

    fn changes(&self, after: i64) -> BoxFuture<'_, Result<Changes, CopyError>> {
        Box::pin(self.read_changes(after))
    }

    fn archive(&self, revision: i64, after: ArchiveCursor) -> BoxFuture<'_, Result<ArchivePart, CopyError>> {
        Box::pin(self.read_archive(revision, after))
    }

    fn revision_at(&self, time: i64) -> BoxFuture<'_, Result<i64, CopyError>> {
        Box::pin(async move {
            let select = sqlx::query_scalar(super::lookup::REVISION_AT);
            let found =
                select.bind(time).fetch_one(&self.pool).await.map_err(|error| self.database_error(&error))?;
            self.check_unserved(found)
        })
    }
}
