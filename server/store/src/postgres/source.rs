//! Source of copies from a PostgreSQL database, which control services may use. Returns values as stored.

use std::sync::Arc;

use futures::future::BoxFuture;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::lookup::revision_at;
use super::open::{self, Meta};
use super::pool::{ConnectionPool, PooledConnection};
use super::session::{self, BEGIN, Purpose, run, with_timeout};
use super::settings::PostgresSettings;
use super::{failure, row};
use crate::checksum;
use crate::copy::{
    ArchiveCursor, ArchivePart, Changes, CopyError, CopySource, PAGE_STATES, StoreExtent, StoredState,
    page_end, page_length,
};
use crate::key::Key;
use crate::owner_source::{OwnerSource, owner_source};
use crate::seal::Seal;

/// Source of copies from a PostgreSQL database.
pub struct PostgresSource {
    pub(super) pool: Arc<ConnectionPool>,
    seal: Arc<Seal>,
}

/// Makes all reads of a transaction see the same snapshot.
const SNAPSHOT_ISOLATION: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// States of a resource (`$1`) at a revision (`$2`) after a key (`$3`, `$4`), in key order.
macro_rules! states {
    () => {
        "(SELECT DISTINCT ON (namespace, name) namespace, name, revision, deleted FROM log \
         WHERE resource = $1 AND revision <= $2 AND (namespace, name) > ($3, $4) \
         ORDER BY namespace, name, revision DESC) k JOIN log l ON l.revision = k.revision \
         WHERE NOT k.deleted ORDER BY k.namespace, k.name LIMIT $5"
    };
}

/// Columns of a row of a page. The last but one is true if the state is the current one of its object.
macro_rules! columns {
    () => {
        "l.resource, l.namespace, l.name, l.revision, l.uid, l.previous, l.deleted, l.value, NOT EXISTS (SELECT 1 FROM log n \
         WHERE n.resource = l.resource AND n.namespace = l.namespace AND n.name = l.name AND n.revision > l.revision), l.checksum"
    };
}

impl PostgresSource {
    /// Opens a database. Values stay sealed; `seal` is used to read the owners of superseded states.
    ///
    /// # Errors
    /// [`CopyError`].
    pub async fn open(settings: PostgresSettings, seal: Arc<Seal>) -> Result<Self, CopyError> {
        let place = settings.place();
        let store = |reason: String| CopyError::Store { place: place.clone(), reason };
        let step_timeout = settings.step_timeout();
        let connected = session::connect(&settings, Purpose::Read).await;
        let mut connection = connected.map_err(|error| store(failure::reason(&error)))?;
        let found = async {
            let result = with_timeout(step_timeout, run(&mut connection, BEGIN)).await;
            result.map_err(|error| store(failure::reason(&error)))?;
            let found = open::is_current(&mut connection, &settings, &place).await;
            if found.map_err(|error| store(error.to_string()))? {
                return Ok(());
            }
            let version = with_timeout(step_timeout, open::schema_version(&mut connection)).await;
            Err(store(match version.map_err(|error| store(failure::reason(&error)))? {
                0 => "no store found".to_owned(),
                _ => "the schema is of an earlier release: copy with that release, or start this release on the database first".to_owned(),
            }))
        };
        let found = found.await;
        session::close(connection, step_timeout).await;
        found?;
        Ok(Self { pool: Arc::new(ConnectionPool::new(&settings)), seal })
    }

    /// Returns the source of a store in this process.
    pub(super) fn from_store(pool: Arc<ConnectionPool>, seal: Arc<Seal>) -> Self {
        Self { pool, seal }
    }

    pub(super) fn database_error(&self, error: &sqlx::Error) -> CopyError {
        tracing::debug!(error = failure::log_text(error), "cannot read from the source database");
        CopyError::Store { place: self.pool.settings().place(), reason: failure::reason(error) }
    }

    /// Starts a read transaction. Returns it with the extent of the store.
    async fn begin(&self) -> Result<(PooledConnection<'_>, StoreExtent), CopyError> {
        let (transaction, meta) = self.begin_with_meta().await?;
        let Meta { identity, revision, compacted, .. } = meta;
        Ok((transaction, StoreExtent { identity, revision, oldest: compacted }))
    }

    /// Starts a read transaction. Returns it with the row of `meta`.
    pub(super) async fn begin_with_meta(&self) -> Result<(PooledConnection<'_>, Meta), CopyError> {
        let begin = async {
            let mut transaction = self.pool.acquire().await?;
            transaction.begin().await?;
            self.pool.with_timeout(run(&mut transaction, SNAPSHOT_ISOLATION)).await?;
            let meta = self.pool.with_timeout(open::meta(&mut transaction)).await?;
            Ok((transaction, meta))
        };
        begin.await.map_err(|error: sqlx::Error| self.database_error(&error))
    }

    async fn read_states(&self, revision: i64, after: Option<&Key>) -> Result<Vec<StoredState>, CopyError> {
        const SIZES: &str = concat!("SELECT octet_length(l.value)::bigint FROM ", states!());
        const SELECT: &str = concat!("SELECT ", columns!(), " FROM ", states!());
        let failed = |error| self.database_error(&error);
        let (mut transaction, extent) = self.begin().await?;
        if revision < extent.oldest {
            return Err(CopyError::Compacted { revision, oldest: extent.oldest });
        }
        let mut resources =
            self.pool.with_timeout(open::resources(&mut transaction)).await.map_err(failed)?;
        resources.sort();
        for resource in resources {
            let (namespace, name) = match after {
                Some(after) if *after.resource() > resource => continue,
                Some(after) if *after.resource() == resource => row::columns(after.path()),
                _ => Default::default(),
            };
            let sizes = sqlx::query_scalar(SIZES).bind(resource.to_string()).bind(revision);
            let sizes = sizes.bind(&*namespace).bind(&*name).bind(PAGE_STATES as i64);
            let sizes: Vec<i64> =
                self.pool.with_timeout(sizes.fetch_all(&mut *transaction)).await.map_err(failed)?;
            if sizes.is_empty() {
                continue;
            }
            let select = sqlx::query(SELECT).bind(resource.to_string()).bind(revision);
            let select = select.bind(&*namespace).bind(&*name).bind(page_length(&sizes));
            let rows = self.pool.with_timeout(select.fetch_all(&mut *transaction)).await.map_err(failed)?;
            let states = self.with_owners(&mut transaction, &rows).await?;
            transaction.commit().await.map_err(failed)?;
            return Ok(states);
        }
        transaction.commit().await.map_err(failed)?;
        Ok(Vec::new())
    }

    async fn read_changes(&self, after: i64) -> Result<Changes, CopyError> {
        const SIZES: &str = "SELECT revision, octet_length(value)::bigint FROM log WHERE revision > $1 ORDER BY revision LIMIT $2";
        const SELECT: &str = concat!(
            "SELECT ",
            columns!(),
            " FROM log l WHERE l.revision > $1 AND l.revision <= $2 ORDER BY l.revision"
        );
        let failed = |error| self.database_error(&error);
        let (mut transaction, extent) = self.begin().await?;
        if after < extent.oldest {
            return Err(CopyError::Compacted { revision: after, oldest: extent.oldest });
        }
        let sizes = sqlx::query_as(SIZES).bind(after).bind(PAGE_STATES as i64);
        let sizes: Vec<(i64, i64)> =
            self.pool.with_timeout(sizes.fetch_all(&mut *transaction)).await.map_err(failed)?;
        let page_end = page_end(&sizes, extent.revision);
        let select = sqlx::query(SELECT).bind(after).bind(page_end);
        let rows = self.pool.with_timeout(select.fetch_all(&mut *transaction)).await.map_err(failed)?;
        let states = self.with_owners(&mut transaction, &rows).await?;
        transaction.commit().await.map_err(failed)?;
        Ok(Changes { states, until: page_end, revision: extent.revision })
    }

    /// Decodes states from the columns of `columns!`, with their owners.
    async fn with_owners(
        &self,
        connection: &mut PgConnection,
        rows: &[PgRow],
    ) -> Result<Vec<StoredState>, CopyError> {
        const SELECT: &str = "SELECT o.resource, o.namespace, o.name, o.owner_uid FROM owner o \
            JOIN unnest($1::text[], $2::text[], $3::text[]) AS k(resource, namespace, name) \
            ON o.resource = k.resource AND o.namespace = k.namespace AND o.name = k.name";
        let failed = |error| self.database_error(&error);
        let mut states = Vec::with_capacity(rows.len());
        for row in rows {
            let (state, is_current) = state(row).map_err(failed)?;
            let checksum = row.try_get("checksum").map_err(failed)?;
            checksum::verify_copied(&state.key, state.revision, &state.value, checksum)?;
            let owners = owner_source(&self.seal, &state, is_current).await;
            states.push((state, owners));
        }
        let indexed_states = states.iter().filter(|(_, owners)| matches!(owners, OwnerSource::Indexed));
        let mut columns: [Vec<String>; 3] = Default::default();
        for (state, _) in indexed_states {
            let (namespace, name) = row::columns(state.key.path());
            columns[0].push(state.key.resource().to_string());
            columns[1].push(namespace.into_owned());
            columns[2].push(name.into_owned());
        }
        let mut indexed = Vec::new();
        if !columns[0].is_empty() {
            let [resources, namespaces, names] = columns;
            let select = sqlx::query(SELECT).bind(resources).bind(namespaces).bind(names);
            for row in &self.pool.with_timeout(select.fetch_all(connection)).await.map_err(failed)? {
                let resource = row::resource(row.try_get(0).map_err(failed)?);
                let owner: &str = row.try_get(3).map_err(failed)?;
                indexed.push((
                    row::key(&resource, row, 1).map_err(failed)?,
                    row::from_column(owner).into_owned(),
                ));
            }
        }
        Ok(crate::owner_source::join_indexed(states, &indexed))
    }
}

/// Decodes a state without its owners. Returns true with it if it is the current one.
fn state(row: &PgRow) -> Result<(StoredState, bool), sqlx::Error> {
    let resource = row::resource(row.try_get(0)?);
    let uid: &str = row.try_get(4)?;
    let state = StoredState {
        key: row::key(&resource, row, 1)?,
        revision: row.try_get(3)?,
        uid: row::from_column(uid).into_owned(),
        previous: row.try_get(5)?,
        deleted: row.try_get(6)?,
        value: row.try_get(7)?,
        owners: None,
    };
    Ok((state, row.try_get(8)?))
}

impl CopySource for PostgresSource {
    fn extent(&self) -> BoxFuture<'_, Result<StoreExtent, CopyError>> {
        Box::pin(async {
            let (transaction, extent) = self.begin().await?;
            transaction.commit().await.map_err(|error| self.database_error(&error))?;
            Ok(extent)
        })
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
        Box::pin(
            async move { revision_at(&self.pool, time).await.map_err(|error| self.database_error(&error)) },
        )
    }
}
