//! Target of copies in a PostgreSQL database. Writes in one transaction: the previous content is visible until the commit.

use std::collections::HashMap;

use futures::future::BoxFuture;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection, Row};

use super::meta::random_id;
use super::open;
use super::session::{self, run, with_timeout};
use super::settings::PostgresSettings;
use super::{failure, row};
use crate::checksum;
use crate::copy::{ArchivePart, CopyError, CopyTarget, FinishedCopy, StoreExtent, StoredState};
use crate::identity::Identity;
use crate::key::Key;

/// Application name of sessions of copies; those of control services use `portico`.
const APPLICATION: &str = "portico-copy";

/// Target of copies in a PostgreSQL database.
pub struct PostgresTarget {
    settings: PostgresSettings,
    pub(super) connection: PgConnection,
    existing: Option<StoreExtent>,
    /// Lower bound of the revisions of superseded states: initial value of `swept`.
    oldest_superseded: Option<i64>,
    /// ID that identifies the commit if its result is in doubt.
    commit_id: i64,
}

/// Columns of keys.
#[derive(Default)]
pub(super) struct KeyColumns(pub(super) [Vec<String>; 3]);

impl KeyColumns {
    pub(super) fn push(&mut self, key: &Key) {
        let (namespace, name) = row::columns(key.path());
        self.0[0].push(key.resource().to_string());
        self.0[1].push(namespace.into_owned());
        self.0[2].push(name.into_owned());
    }
}

impl PostgresTarget {
    /// Opens a database that no control service uses. Unless `force` is set, a database with objects is
    /// rejected. Creates missing tables.
    ///
    /// # Errors
    /// [`CopyError`].
    pub async fn open(settings: PostgresSettings, force: bool) -> Result<Self, CopyError> {
        let place = settings.place();
        let failed = |error: sqlx::Error| {
            tracing::debug!(error = failure::log_text(&error), "cannot prepare the target database");
            CopyError::Store { place: place.clone(), reason: failure::reason(&error) }
        };
        let mut connection = connect(&settings).await.map_err(failed)?;
        let prepared = open::prepare(&mut connection, &settings).await;
        prepared.map_err(|error| CopyError::Store { place: place.clone(), reason: error.to_string() })?;
        let users = in_use(&mut connection).await.map_err(failed)?;
        if users > 0 {
            return Err(CopyError::InUse { place, by: format!("{users} connections of control services") });
        }
        let existing = lock(&mut connection).await.map_err(failed)?;
        if let Some(StoreExtent { identity, revision, .. }) = existing.as_ref().filter(|_| !force) {
            let store_id = identity.store_id.clone();
            return Err(CopyError::NotEmpty { place, store_id, revision: *revision });
        }
        run(&mut connection, "TRUNCATE meta, log, owner, mark, swept, archive, archived, lost")
            .await
            .map_err(failed)?;
        Ok(Self { settings, connection, existing, oldest_superseded: None, commit_id: random_id() })
    }

    pub(super) fn database_error(&self, error: &sqlx::Error) -> CopyError {
        tracing::debug!(error = failure::log_text(error), "cannot write to the target database");
        CopyError::Store { place: self.settings.place(), reason: failure::reason(error) }
    }

    async fn write(&mut self, states: Vec<StoredState>, replace: bool) -> Result<(), sqlx::Error> {
        const INSERT_OWNERS: &str = "INSERT INTO owner (owner_uid, resource, namespace, name) \
            SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) ON CONFLICT DO NOTHING";
        const DELETE_OWNERS: &str = "DELETE FROM owner o USING unnest($1::text[], $2::text[], $3::text[]) \
            AS k(resource, namespace, name) \
            WHERE o.resource = k.resource AND o.namespace = k.namespace AND o.name = k.name";
        self.insert(&states).await?;
        // Only the last of several states of an object has owners.
        let last: HashMap<_, _> = states.iter().map(|state| (&state.key, state)).collect();
        if replace {
            let mut keys = KeyColumns::default();
            last.values().for_each(|state| keys.push(&state.key));
            let [resources, namespaces, names] = keys.0;
            let delete = sqlx::query(DELETE_OWNERS).bind(resources).bind(namespaces).bind(names);
            delete.execute(&mut self.connection).await?;
        }
        let (mut uids, mut keys) = (Vec::new(), KeyColumns::default());
        for state in last.into_values() {
            for owner in state.owners.iter().flatten() {
                uids.push(row::to_column(owner).into_owned());
                keys.push(&state.key);
            }
        }
        let [resources, namespaces, names] = keys.0;
        let insert = sqlx::query(INSERT_OWNERS).bind(uids).bind(resources).bind(namespaces).bind(names);
        insert.execute(&mut self.connection).await.map(drop)
    }

    async fn insert(&mut self, states: &[StoredState]) -> Result<(), sqlx::Error> {
        // Commit ID 0: the commit of the other database is unknown.
        const LOG: &str = "INSERT INTO log (resource, namespace, name, revision, uid, previous, deleted, value, checksum, commit_id) \
            SELECT *, 0 FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], \
            $7::boolean[], $8::bytea[], $9::bigint[])";
        let mut keys = KeyColumns::default();
        states.iter().for_each(|state| keys.push(&state.key));
        let [resources, namespaces, names] = keys.0;
        let column = |field: fn(&StoredState) -> i64| states.iter().map(field).collect::<Vec<_>>();
        let uids: Vec<_> = states.iter().map(|state| row::to_column(&state.uid).into_owned()).collect();
        let deleted: Vec<_> = states.iter().map(|state| state.deleted).collect();
        let values: Vec<&[u8]> = states.iter().map(|state| &*state.value).collect();
        let insert = sqlx::query(LOG).bind(resources).bind(namespaces).bind(names);
        let insert = insert.bind(column(|state| state.revision)).bind(uids);
        let insert = insert.bind(column(|state| state.previous)).bind(deleted).bind(values);
        let checksum =
            |state: &StoredState| checksum::compute_checksum(&state.key, state.revision, &state.value);
        let insert = insert.bind(states.iter().map(checksum).collect::<Vec<_>>());
        insert.execute(&mut self.connection).await.map(drop)
    }

    async fn end(mut self: Box<Self>, new_extent: StoreExtent) -> Result<FinishedCopy, CopyError> {
        let result = self.commit(&new_extent).await;
        let finished = FinishedCopy { extent: new_extent, saved_to: None };
        let Err(error) = result else {
            session::close(self.connection, self.settings.step_timeout()).await;
            return Ok(finished);
        };
        if failure::is_in_doubt(&error) && self.is_committed().await? {
            return Ok(finished);
        }
        Err(self.database_error(&error))
    }

    async fn commit(&mut self, new_extent: &StoreExtent) -> Result<(), sqlx::Error> {
        const META: &str = "INSERT INTO meta (id, store_id, epoch, revision, compacted, commit_id) \
            VALUES (1, $1, $2, $3, $4, $5)";
        const SWEPT: &str = "INSERT INTO swept (id, revision) VALUES (1, $1)";
        let Identity { store_id, epoch } = &new_extent.identity;
        let meta =
            sqlx::query(META).bind(store_id).bind(epoch).bind(new_extent.revision).bind(new_extent.oldest);
        meta.bind(self.commit_id).execute(&mut self.connection).await?;
        sqlx::query(SWEPT)
            .bind(self.oldest_superseded.unwrap_or(new_extent.oldest).min(new_extent.oldest))
            .execute(&mut self.connection)
            .await?;
        run(&mut self.connection, self.settings.commit_sql()).await
    }

    /// Returns true if the transaction was committed although its result was lost.
    async fn is_committed(&self) -> Result<bool, CopyError> {
        let found = async {
            let mut connection = connect(&self.settings).await?;
            let meta = open::meta(&mut connection).await?;
            Ok(meta.head_commit_id == self.commit_id)
        };
        match found.await {
            Ok(is_there) => Ok(is_there),
            Err(sqlx::Error::RowNotFound) => Ok(false),
            Err(error) => {
                let (place, reason) = (self.settings.place(), failure::reason(&error));
                Err(CopyError::InDoubt { place, reason })
            }
        }
    }
}

async fn connect(settings: &PostgresSettings) -> Result<PgConnection, sqlx::Error> {
    let options: PgConnectOptions = settings.options().application_name(APPLICATION);
    with_timeout(settings.connect_timeout, options.connect()).await
}

/// Returns the number of connections of control services that this user can see.
async fn in_use(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    const SELECT: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
        AND application_name = 'portico' AND pid <> pg_backend_pid()";
    sqlx::query_scalar(SELECT).persistent(false).fetch_one(connection).await
}

/// Begins the transaction with exclusive locks. Returns the extent of the existing store.
async fn lock(connection: &mut PgConnection) -> Result<Option<StoreExtent>, sqlx::Error> {
    const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = 0; \
        SET LOCAL idle_in_transaction_session_timeout = 0; \
        LOCK TABLE meta, log, owner, mark, swept, archive, archived, lost IN ACCESS EXCLUSIVE MODE";
    const META: &str = "SELECT store_id, epoch, revision, compacted FROM meta \
        WHERE EXISTS (SELECT 1 FROM log) AND id = 1";
    run(connection, BEGIN).await?;
    let Some(row) = sqlx::query(META).fetch_optional(connection).await? else { return Ok(None) };
    let identity = Identity { store_id: row.try_get(0)?, epoch: row.try_get(1)? };
    Ok(Some(StoreExtent { identity, revision: row.try_get(2)?, oldest: row.try_get(3)? }))
}

impl CopyTarget for PostgresTarget {
    fn existing(&self) -> Option<&StoreExtent> {
        self.existing.as_ref()
    }

    fn add(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(async { self.write(states, false).await.map_err(|error| self.database_error(&error)) })
    }

    fn follow(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>> {
        let first = states.iter().map(|state| state.revision - 1).min();
        self.oldest_superseded = self.oldest_superseded.or(first);
        Box::pin(async { self.write(states, true).await.map_err(|error| self.database_error(&error)) })
    }

    fn has_archive(&self) -> bool {
        true
    }

    fn archive(&mut self, part: ArchivePart) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(async { self.write_archive(part).await.map_err(|error| self.database_error(&error)) })
    }

    fn finish(
        self: Box<Self>,
        new_extent: StoreExtent,
    ) -> BoxFuture<'static, Result<FinishedCopy, CopyError>> {
        Box::pin(self.end(new_extent))
    }
}
