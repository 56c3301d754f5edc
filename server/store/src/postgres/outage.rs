//! Logs that the database does not answer, and that it does again.

use parking_lot::Mutex;

use super::failure::logged;
use crate::outage_log::OutageLog;

/// Outages of the database.
#[derive(Default)]
pub(super) struct Outage(Mutex<OutageLog>);

impl Outage {
    /// The database did not answer.
    pub(super) fn failed(&self, error: &sqlx::Error) {
        let outage_seconds = self.0.lock().failed();
        if let Some(outage_seconds) = outage_seconds {
            tracing::error!(error = logged(error), outage_seconds, "database unavailable, retrying");
        }
    }

    /// The database has answered.
    pub(super) fn answered(&self) {
        let outage_seconds = self.0.lock().answered();
        if let Some(outage_seconds) = outage_seconds {
            tracing::info!(outage_seconds, "database available again");
        }
    }
}
