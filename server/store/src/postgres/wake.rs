//! Listens for commits of others. What is missed is found by the writer's polls: this only makes it sooner.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool, PgPoolOptions};
use tokio::sync::Notify;

use super::commit::CHANNEL;
use super::failure::logged;
use super::settings::PostgresSettings;
use crate::hub::Hub;

/// How long after a failure it is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Runs until it is dropped.
pub(super) async fn listen(settings: PostgresSettings, hub: Arc<Hub>, wake: Arc<Notify>) {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(settings.statement_timeout)
        .connect_lazy_with(settings.options());
    loop {
        if let Err(error) = heard(&pool, &hub, &wake).await {
            tracing::debug!(error = logged(&error), "commits of others are polled for");
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn heard(pool: &PgPool, hub: &Hub, wake: &Notify) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    wake.notify_one();
    loop {
        // None: the connection was lost, and with it what was told meanwhile.
        let told = listener.try_recv().await?;
        let revision: Option<i64> = told.and_then(|told| told.payload().parse().ok());
        if revision.is_none_or(|revision| revision > hub.revision()) {
            wake.notify_one();
        }
    }
}
