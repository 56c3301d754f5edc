//! Query for the head of the database, and check that it still has the published commits.

use std::sync::Arc;

use tokio::sync::Notify;

use super::failure::{self, store_error};
use super::open::{self, Meta};
use super::pool::{ConnectionPool, PooledConnection};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::identity::Identity;
use crate::latest_revision::QueryLatest;

/// Query for the head, on its own connection.
pub(super) struct HeadQuery {
    pub(super) connections: Arc<ConnectionPool>,
    pub(super) hub: Arc<Hub>,
    pub(super) identity: Identity,
    /// Notified when other processes have written.
    pub(super) wake: Arc<Notify>,
}

impl QueryLatest for HeadQuery {
    const TIMEOUT_MESSAGE: &'static str = "timed out waiting for commits of other processes";

    async fn query_latest(&self) -> Result<i64, StoreError> {
        let published = self.hub.revision();
        let result = match self.meta().await {
            // The connection may have been lost long ago: retry with another one.
            Err(error)
                if failure::is_connection_lost(&error) && !matches!(error, sqlx::Error::PoolTimedOut) =>
            {
                self.meta().await
            }
            result => result,
        };
        let (meta, connection) = result.map_err(store_error)?;
        check_published(&meta, &self.identity, published, &self.connections, &self.wake)?;
        connection.release().await.map_err(store_error)?;
        Ok(meta.revision)
    }

    fn on_database_ahead(&self, _: i64) {
        self.wake.notify_one();
    }
}

impl HeadQuery {
    async fn meta(&self) -> Result<(Meta, PooledConnection<'_>), sqlx::Error> {
        let mut connection = self.connections.acquire_for_head_query().await?;
        let meta = self.connections.with_timeout(open::meta(&mut connection)).await?;
        Ok((meta, connection))
    }
}

/// Checks that a database has the published commits. Otherwise it is another database, a standby that is behind, or it has lost
/// commits; the writer determines which.
pub(super) fn check_published(
    meta: &Meta,
    expected: &Identity,
    published: i64,
    connections: &ConnectionPool,
    wake: &Notify,
) -> Result<(), StoreError> {
    if meta.identity == *expected && meta.revision >= published {
        return Ok(());
    }
    connections.drop_idle();
    wake.notify_one();
    Err(StoreError::Unavailable("the database is behind a published revision".to_owned()))
}
