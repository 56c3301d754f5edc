//! Query for the head of the database, and check that it still has the published commits.

use std::sync::Arc;

use tokio::sync::Notify;

use super::failure::{self, failed};
use super::open::{self, Meta};
use super::pool::{Connections, Lent};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::identity::Identity;
use crate::latest::Ask;

/// Query for the head, on its own connection.
pub(super) struct Asking {
    pub(super) connections: Arc<Connections>,
    pub(super) hub: Arc<Hub>,
    pub(super) identity: Identity,
    /// Notified when other processes have written.
    pub(super) wake: Arc<Notify>,
}

impl Ask for Asking {
    const LATE: &'static str = "timed out waiting for commits of other processes";

    async fn ask(&self) -> Result<i64, StoreError> {
        let shown = self.hub.revision();
        let asked = match self.meta().await {
            // The connection may have been lost long ago: retry with another one.
            Err(error) if failure::is_lost(&error) && !matches!(error, sqlx::Error::PoolTimedOut) => {
                self.meta().await
            }
            asked => asked,
        };
        let (meta, lent) = asked.map_err(failed)?;
        check(&meta, &self.identity, shown, &self.connections, &self.wake)?;
        lent.give_back().await.map_err(failed)?;
        Ok(meta.revision)
    }

    fn is_ahead(&self, _: i64) {
        self.wake.notify_one();
    }
}

impl Asking {
    async fn meta(&self) -> Result<(Meta, Lent<'_>), sqlx::Error> {
        let mut lent = self.connections.take_to_ask().await?;
        let meta = self.connections.in_time(open::meta(&mut lent)).await?;
        Ok((meta, lent))
    }
}

/// Checks that a database has the published commits. Otherwise it is another database, a standby that is behind, or it has lost
/// commits; the writer determines which.
pub(super) fn check(
    meta: &Meta,
    known: &Identity,
    shown: i64,
    connections: &Connections,
    wake: &Notify,
) -> Result<(), StoreError> {
    if meta.identity == *known && meta.revision >= shown {
        return Ok(());
    }
    connections.forget();
    wake.notify_one();
    Err(StoreError::Unavailable("the database is behind a published revision".to_owned()))
}
