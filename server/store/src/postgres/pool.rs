//! The connections that read.
//!
//! Each is lent for one piece of work, of which every step is given up in time. It goes back when the work is done; one that
//! was given up midway, by us or by whoever asked, is cut, so that it takes nobody's place. When the database does not answer, those that
//! lie idle are cut, too: they lead to the same place.
//!
//! A pooler in transaction mode (PgBouncer's `pool_mode = transaction`) gives a client another connection to the database with each
//! transaction: a statement is prepared, run and forgotten within one. So whoever takes a connection gets a transaction that is
//! open already; it only reads.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::{Connection, PgConnection};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::failure;
use super::outage::Outage;
use super::session::{self, BEGIN, Purpose, in_time, run};
use super::settings::PostgresSettings;

/// How long a connection may lie idle without being asked whether it is still there.
const TRUSTED: Duration = Duration::from_secs(1);
/// How long it has to answer that, at most: there must be time left to connect anew.
const PROBE: Duration = Duration::from_secs(2);
/// How long a connection lies idle before it is ended.
const IDLE: Duration = Duration::from_secs(600);

/// Connections that are made when they are needed, and kept for the next one who needs one.
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

/// A connection for one piece of work. Dropped before [`Lent::give_back`] or [`Lent::commit`] it is cut, and nothing is written.
pub(super) struct Lent<'a> {
    connections: &'a Connections,
    connection: PgConnection,
    _place: SemaphorePermit<'a>,
}

impl Connections {
    /// For so many readers at a time, and one who asks how far the database is and waits for no reader.
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

    /// Where they lead to.
    pub(super) fn settings(&self) -> &PostgresSettings {
        &self.settings
    }

    /// One that reads.
    pub(super) async fn take(&self) -> Result<Lent<'_>, sqlx::Error> {
        self.lend(&self.readers).await
    }

    /// The one that asks how far the database is.
    pub(super) async fn take_to_ask(&self) -> Result<Lent<'_>, sqlx::Error> {
        self.lend(&self.asker).await
    }

    /// One short piece of work that reads.
    pub(super) async fn read<T>(
        &self,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let mut lent = self.take().await?;
        let done = self.in_time(work(&mut lent)).await?;
        lent.give_back().await?;
        Ok(done)
    }

    /// What the database has not done after a time is given up.
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
        // That all others read shows nothing about the database.
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

    /// One that lies idle and is still there.
    async fn kept(&self) -> Option<PgConnection> {
        let Idle { mut connection, since } = self.idle.lock().pop()?;
        let probe = PROBE.min(self.settings.patience() / 4);
        if since.elapsed() < TRUSTED || in_time(probe, connection.ping()).await.is_ok() {
            return Some(connection);
        }
        self.forget();
        None
    }

    /// Cuts what lies idle.
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

    /// Lends no more, and ends what lies idle in order.
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
    /// The work is done, and nothing was written.
    pub(super) async fn give_back(mut self) -> Result<(), sqlx::Error> {
        let connections = self.connections;
        if connections.settings.transaction_pooler {
            connections.in_time(run(&mut self, connections.settings.end())).await?;
        }
        connections.keep(self.connection);
        Ok(())
    }

    /// Begins a transaction that writes, where none has begun.
    pub(super) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        let connections = self.connections;
        match connections.settings.transaction_pooler {
            true => Ok(()),
            false => connections.in_time(run(self, BEGIN)).await,
        }
    }

    /// What was written since [`Lent::begin`] is durable.
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
