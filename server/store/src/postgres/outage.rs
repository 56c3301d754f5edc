//! Logs the start and the end of outages of the database.

use parking_lot::Mutex;

use super::failure::log_text;
use crate::outage_log::OutageLog;

/// Log of outages of the database.
#[derive(Default)]
pub(super) struct Outage(Mutex<OutageLog>);

impl Outage {
    /// Records a failed query.
    pub(super) fn record_failure(&self, error: &sqlx::Error) {
        let outage_seconds = self.0.lock().record_failure();
        if let Some(outage_seconds) = outage_seconds {
            tracing::error!(error = log_text(error), outage_seconds, "database unavailable, retrying");
        }
    }

    /// Records a successful query.
    pub(super) fn record_success(&self) {
        let outage_seconds = self.0.lock().record_success();
        if let Some(outage_seconds) = outage_seconds {
            tracing::info!(outage_seconds, "database available again");
        }
    }
}
