//! Logs the start and the end of outages of the database.

use parking_lot::Mutex;

use super::failure::logged;
use crate::outage_log::OutageLog;

/// Log of outages of the database.
#[derive(Default)]
pub(super) struct Outage(Mutex<OutageLog>);

impl Outage {
    /// Records a failed query.
    pub(super) fn failed(&self, error: &sqlx::Error) {
        let outage_seconds = self.0.lock().failed();
        if let Some(outage_seconds) = outage_seconds {
            tracing::error!(error = logged(error), outage_seconds, "database unavailable, retrying");
        }
    }

    /// Records a successful query.
    pub(super) fn answered(&self) {
        let outage_seconds = self.0.lock().answered();
        if let Some(outage_seconds) = outage_seconds {
            tracing::info!(outage_seconds, "database available again");
        }
    }
}
