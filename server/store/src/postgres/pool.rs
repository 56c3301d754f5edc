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
use super::session::{self, BEGIN, Purpose, in_time, run};
use super::settings::PostgresSettings;

/// Idle time after which a connection is probed before use.
const TRUSTED: Duration = Duration::from_secs(1);
/// Timeout of the probe, which leaves time to reconnect.
const PROBE: Duration = Duration::from_secs(2);
/// Idle time after which a connection is closed.
const IDLE: Duration = Duration::from_secs(600);

/// Pool of connections for reads, opened on demand and reused.
pub(super) struct Connections {
    settings: PostgresSettings,
    readers: Semaphore,
    asker: Semaphore,
    idle: Mutex<Vec<Idle>>,
    pub(super) outage: Outage,
}

struct Idle {
    connection: PgConnection,
    since: Instant,
}

/// Connection for one unit of work. If dropped before [`PooledConnection::release`] or [`PooledConnection::commit`], it is
/// closed and writes are discarded.
pub(super) struct Lent<'a> {
    connections: &'a Connections,
    connection: PgConnection,
    _place: SemaphorePermit<'a>,
}

impl Connections {
    /// Creates a pool with connections for readers, and one for queries of the head, which do not wait for readers.
    pub(super) fn new(settings: &PostgresSettings) -> Self {
        let readers = usize::try_from(settings.read_connections).unwrap_or(usize::MAX);
        Self {
            settings: settings.clone(),
            readers: Semaphore::new(readers.clamp(2, Semaphore::MAX_PERMITS)),
            asker: Semaphore::new(1),
            idle: Mutex::default(),
            outage: Outage::default(),
        }
    }

    /// Returns the settings of the database.
    pub(super) fn settings(&self) -> &PostgresSettings {
        &self.settings
    }

    /// Acquires a connection for reads.
    pub(super) async fn take(&self) -> Result<Lent<'_>, sqlx::Error> {
        self.lend(&self.readers).await
    }

    /// Acquires the connection for queries of the head.
    pub(super) async fn take_to_ask(&self) -> Result<Lent<'_>, sqlx::Error> {
        self.lend(&self.asker).await
    }

    /// Runs one short read.
    pub(super) async fn read<T>(
        &self,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let mut lent = self.take().await?;
        let done = self.in_time(work(&mut lent)).await?;
        lent.give_back().await?;
        Ok(done)
    }

    /// Runs work with the timeout of a step. Records outages.
    pub(super) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let done = in_time(self.settings.patience(), work).await;
        match &done {
            Err(sqlx::Error::PoolClosed) => {}
            Err(error) if failure::is_lost(error) => {
                self.outage.failed(error);
                self.forget();
            }
            _ => self.outage.answered(),
        }
        done
    }

    async fn lend<'a>(&'a self, places: &'a Semaphore) -> Result<Lent<'a>, sqlx::Error> {
        let place = async { places.acquire().await.map_err(|_| sqlx::Error::PoolClosed) };
        // A timeout while all permits are in use does not indicate an outage.
        let place = in_time(self.settings.patience(), place).await?;
        let connection = self.in_time(self.connection()).await?;
        Ok(Lent { connections: self, connection, _place: place })
    }

    async fn connection(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = match self.kept().await {
            Some(connection) => connection,
            None => session::connect(&self.settings, Purpose::Read).await?,
        };
        if self.settings.transaction_pooler {
            run(&mut connection, &self.settings.begin_pooled()).await?;
        }
        Ok(connection)
    }

    /// Returns an idle connection that still works.
    async fn kept(&self) -> Option<PgConnection> {
        let Idle { mut connection, since } = self.idle.lock().pop()?;
        let probe = PROBE.min(self.settings.patience() / 4);
        if since.elapsed() < TRUSTED || in_time(probe, connection.ping()).await.is_ok() {
            return Some(connection);
        }
        self.forget();
        None
    }

    /// Closes idle connections.
    pub(super) fn forget(&self) {
        let cut = std::mem::take(&mut *self.idle.lock());
        drop(cut);
    }

    fn keep(&self, connection: PgConnection) {
        let mut idle = self.idle.lock();
        idle.retain(|idle| idle.since.elapsed() < IDLE);
        if !self.readers.is_closed() {
            idle.push(Idle { connection, since: Instant::now() });
        }
    }

    /// Closes the pool and its idle connections gracefully.
    pub(super) async fn close(&self) {
        self.readers.close();
        self.asker.close();
        let idle = std::mem::take(&mut *self.idle.lock());
        for Idle { connection, .. } in idle {
            session::close(connection, PROBE).await;
        }
    }
}

impl Lent<'_> {
    /// Returns the connection after work that wrote nothing.
    pub(super) async fn give_back(mut self) -> Result<(), sqlx::Error> {
        let connections = self.connections;
        if connections.settings.transaction_pooler {
            connections.in_time(run(&mut self, connections.settings.end())).await?;
        }
        connections.keep(self.connection);
        Ok(())
    }

    /// Begins a transaction that writes, unless one is open.
    pub(super) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        let connections = self.connections;
        match connections.settings.transaction_pooler {
            true => Ok(()),
            false => connections.in_time(run(self, BEGIN)).await,
        }
    }

    /// Commits the writes since [`PooledConnection::begin`].
    pub(super) async fn commit(mut self) -> Result<(), sqlx::Error> {
        let connections = self.connections;
        connections.in_time(run(&mut self, connections.settings.commit())).await?;
        connections.keep(self.connection);
        Ok(())
    }
}

impl Deref for Lent<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}
