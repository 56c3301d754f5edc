//! The connections that read, and what a pooler in transaction mode asks of all of them.
//!
//! Such a pooler (PgBouncer's `pool_mode = transaction`) gives a client another connection to the database with each transaction: a
//! statement is prepared, run and forgotten within one. So whoever takes a connection of the pool gets a transaction that is
//! open already; it only reads.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{Connection, Executor, PgConnection, Postgres, Transaction};

use super::settings::PostgresSettings;

/// How long a connection may lie idle without being asked whether it is still there.
const TRUSTED: Duration = Duration::from_secs(1);

/// Begins what is one connection to the database.
pub(super) const BEGIN: &str = "BEGIN";
/// Ends it without having written; nothing stays prepared for the next client.
const END_POOLED: &str = "ROLLBACK; DEALLOCATE ALL";
/// Ends it durably.
const COMMIT_POOLED: &str = "COMMIT; DEALLOCATE ALL";

impl PostgresSettings {
    /// What ends a transaction without having written.
    pub(super) fn end(&self) -> &'static str {
        if self.transaction_pooler { END_POOLED } else { "ROLLBACK" }
    }

    /// What ends a transaction durably.
    pub(super) fn commit(&self) -> &'static str {
        if self.transaction_pooler { COMMIT_POOLED } else { "COMMIT" }
    }
}

/// So many connections at most; they are made when they are needed.
pub(super) fn connections(settings: &PostgresSettings, most: u32) -> PgPool {
    let pool = PgPoolOptions::new()
        .min_connections(0)
        .max_connections(most)
        .acquire_timeout(settings.statement_timeout)
        .test_before_acquire(false);
    let pool = match settings.transaction_pooler {
        true => pool
            .after_connect(|connection, _| Box::pin(run(connection, BEGIN)))
            .before_acquire(|connection, _| Box::pin(async { run(connection, BEGIN).await.map(|()| true) }))
            .after_release(|connection, _| {
                Box::pin(async { run(connection, END_POOLED).await.map(|()| true) })
            }),
        false => pool.before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for > TRUSTED {
                    connection.ping().await?;
                }
                Ok(true)
            })
        }),
    };
    pool.connect_lazy_with(settings.options())
}

/// Runs statements without arguments.
pub(super) async fn run(connection: &mut PgConnection, sql: &'static str) -> Result<(), sqlx::Error> {
    connection.execute(sqlx::raw_sql(sql)).await.map(drop)
}

/// A transaction that writes, by a connection of the pool. Dropped without [`Writing::commit`] nothing is written.
pub(super) enum Writing {
    Direct(Transaction<'static, Postgres>),
    /// In the transaction that it came with.
    Pooled(PoolConnection<Postgres>),
}

impl Writing {
    pub(super) async fn begin(pool: &PgPool, settings: &PostgresSettings) -> Result<Self, sqlx::Error> {
        match settings.transaction_pooler {
            true => pool.acquire().await.map(Self::Pooled),
            false => pool.begin().await.map(Self::Direct),
        }
    }

    pub(super) fn connection(&mut self) -> &mut PgConnection {
        match self {
            Self::Direct(transaction) => transaction,
            Self::Pooled(connection) => connection,
        }
    }

    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Direct(transaction) => transaction.commit().await,
            Self::Pooled(mut connection) => run(&mut connection, COMMIT_POOLED).await,
        }
    }
}
