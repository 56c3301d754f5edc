//! Pool of connections for reads.
//!
//! A connection is acquired for one unit of work, each step of which has a timeout. It is returned after the work. If the work
//! is abandoned, by a timeout or by the caller, the connection is closed, so that it occupies no permit. If the database does
//! not respond, idle connections are closed as well.
//!
//! A pooler in transaction mode (PgBouncer's `pool_mode = transaction`) may use another server connection for each
//! transaction, so a statement is prepared, run and deallocated within one. An acquired connection therefore has an open
//! transaction, which only reads.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::{Connection, PgConnection};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::failure;
use super::outage::Outage;
use super::session::{self, BEGIN, Purpose, run, with_timeout};
use super::settings::PostgresSettings;

/// Idle time after which a connection is probed before use.
const MAX_IDLE_UNPROBED: Duration = Duration::from_secs(1);
/// Timeout of the probe, which leaves time to reconnect.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Idle time after which a connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// Pool of connections for reads, opened on demand and reused.
pub(super) struct ConnectionPool {
    settings: PostgresSettings,
    readers: Semaphore,
    head_query_permit: Semaphore,
    idle: Mutex<Vec<IdleConnection>>,
    pub(super) outage: Outage,
}

struct IdleConnection {
    connection: PgConnection,
    idle_since: Instant,
}

/// Connection for one unit of work. If dropped before [`PooledConnection::release`] or [`PooledConnection::commit`], it is
/// closed and writes are discarded.
pub(super) struct PooledConnection<'a> {
    connections: &'a ConnectionPool,
    connection: PgConnection,
    _permit: SemaphorePermit<'a>,
}

impl ConnectionPool {
    /// Creates a pool with connections for readers, and one for queries of the head, which do not wait for readers.
    pub(super) fn new(settings: &PostgresSettings) -> Self {
        let readers = usize::try_from(settings.read_connections).unwrap_or(usize::MAX);
        Self {
            settings: settings.clone(),
            readers: Semaphore::new(readers.clamp(2, Semaphore::MAX_PERMITS)),
            head_query_permit: Semaphore::new(1),
            idle: Mutex::default(),
            outage: Outage::default(),
        }
    }

    /// Returns the settings of the database.
    pub(super) fn settings(&self) -> &PostgresSettings {
        &self.settings
    }

    /// Acquires a connection for reads.
    pub(super) async fn acquire(&self) -> Result<PooledConnection<'_>, sqlx::Error> {
        self.acquire_from(&self.readers).await
    }

    /// Acquires the connection for queries of the head.
    pub(super) async fn acquire_for_head_query(&self) -> Result<PooledConnection<'_>, sqlx::Error> {
        self.acquire_from(&self.head_query_permit).await
    }

    /// Runs one short read.
    pub(super) async fn read<T>(
        &self,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let mut connection = self.acquire().await?;
        let result = self.with_timeout(work(&mut connection)).await?;
        connection.release().await?;
        Ok(result)
    }

    /// Runs work with the timeout of a step. Records outages.
    pub(super) async fn with_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let result = with_timeout(self.settings.step_timeout(), work).await;
        match &result {
            Err(sqlx::Error::PoolClosed) => {}
            Err(error) if failure::is_connection_lost(error) => {
                self.outage.record_failure(error);
                self.drop_idle();
            }
            _ => self.outage.record_success(),
        }
        result
    }

    async fn acquire_from<'a>(&'a self, permits: &'a Semaphore) -> Result<PooledConnection<'a>, sqlx::Error> {
        let permit = async { permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed) };
        // A timeout while all permits are in use does not indicate an outage.
        let permit = with_timeout(self.settings.step_timeout(), permit).await?;
        let connection = self.with_timeout(self.connection()).await?;
        Ok(PooledConnection { connections: self, connection, _permit: permit })
    }

    async fn connection(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = match self.take_idle().await {
            Some(connection) => connection,
            None => session::connect(&self.settings, Purpose::Read).await?,
        };
        if self.settings.transaction_pooler {
            run(&mut connection, &self.settings.begin_pooled_sql()).await?;
        }
        Ok(connection)
    }

    /// Returns an idle connection that still works.
    async fn take_idle(&self) -> Option<PgConnection> {
        let IdleConnection { mut connection, idle_since } = self.idle.lock().pop()?;
        let probe = PROBE_TIMEOUT.min(self.settings.step_timeout() / 4);
        if idle_since.elapsed() < MAX_IDLE_UNPROBED || with_timeout(probe, connection.ping()).await.is_ok() {
            return Some(connection);
        }
        self.drop_idle();
        None
    }

    /// Closes idle connections.
    pub(super) fn drop_idle(&self) {
        let idle = std::mem::take(&mut *self.idle.lock());
        drop(idle);
    }

    fn put_idle(&self, connection: PgConnection) {
        let mut idle = self.idle.lock();
        idle.retain(|idle| idle.idle_since.elapsed() < IDLE_TIMEOUT);
        if !self.readers.is_closed() {
            idle.push(IdleConnection { connection, idle_since: Instant::now() });
        }
    }

    /// Closes the pool and its idle connections gracefully.
    pub(super) async fn close(&self) {
        self.readers.close();
        self.head_query_permit.close();
        let idle = std::mem::take(&mut *self.idle.lock());
        for IdleConnection { connection, .. } in idle {
            session::close(connection, PROBE_TIMEOUT).await;
        }
    }
}

impl PooledConnection<'_> {
    /// Returns the connection after work that wrote nothing.
    pub(super) async fn release(mut self) -> Result<(), sqlx::Error> {
        let connections = self.connections;
        if connections.settings.transaction_pooler {
            connections.with_timeout(run(&mut self, connections.settings.end_sql())).await?;
        }
        connections.put_idle(self.connection);
        Ok(())
    }

    /// Begins a transaction that writes, unless one is open.
    pub(super) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        let connections = self.connections;
        match connections.settings.transaction_pooler {
            true => Ok(()),
            false => connections.with_timeout(run(self, BEGIN)).await,
        }
    }

    /// Commits the writes since [`PooledConnection::begin`].
    pub(super) async fn commit(mut self) -> Result<(), sqlx::Error> {
        let connections = self.connections;
        connections.with_timeout(run(&mut self, connections.settings.commit_sql())).await?;
        connections.put_idle(self.connection);
        Ok(())
    }
}

impl Deref for PooledConnection<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for PooledConnection<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}
