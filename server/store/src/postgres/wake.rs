//! Listens for notifications of commits of other processes. They only reduce the delay; the writer's polls find missed commits.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::commit::CHANNEL;
use super::failure::log_text;
use super::session::with_timeout;
use super::settings::PostgresSettings;
use crate::hub::Hub;

/// Delay before listening again after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Time without notifications after which the connection is probed.
const PROBE_INTERVAL: Duration = Duration::from_secs(30);

/// Listens until it is dropped.
pub(super) async fn listen(settings: PostgresSettings, hub: Arc<Hub>, wake: Arc<Notify>) {
    loop {
        if let Err(error) = receive(&settings, &hub, &wake).await {
            tracing::debug!(error = log_text(&error), "commit notifications failed, polling");
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

async fn receive(settings: &PostgresSettings, hub: &Hub, wake: &Notify) -> Result<(), sqlx::Error> {
    let step_timeout = settings.step_timeout();
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(step_timeout)
        .connect_lazy_with(settings.options());
    let mut listener = PgListener::connect_with(&pool).await?;
    with_timeout(step_timeout, listener.listen(CHANNEL)).await?;
    wake.notify_one();
    loop {
        let Ok(notification) = timeout(PROBE_INTERVAL, listener.try_recv()).await else {
            with_timeout(step_timeout, sqlx::query("SELECT 1").execute(&mut listener)).await?;
            continue;
        };
        // `None`: the connection was lost, and notifications may have been missed.
        let revision: Option<i64> =
            notification?.and_then(|notification| notification.payload().parse().ok());
        if revision.is_none_or(|revision| revision > hub.revision()) {
            wake.notify_one();
        }
    }
}
