//! Sources of the configuration streams.

use portico_kit::lifecycle::Signal;
use portico_proto::convert::Version;
use portico_routes::{Publisher, Routes};
use tokio::sync::watch;

use super::board::Board;

/// Sources of the configuration streams.
pub(crate) struct StreamSources {
    /// Compiled routes.
    pub(crate) routes: Routes,
    /// All configuration entries except routes.
    pub(crate) board: Board,
    /// Signaled once every role and binding is on the board.
    pub(crate) policy_known: Signal,
    /// Signaled once every check is on the board.
    pub(crate) checks_known: Signal,
    /// ID of the store. The revision of a version is that of the routes.
    pub(crate) store_id: String,
    /// See [`Version::epoch`].
    pub(crate) epoch: String,
    /// Revision of the store. Revisions that concern no facade still advance their version.
    pub(crate) revisions: watch::Receiver<i64>,
}

impl StreamSources {
    pub(super) fn publisher(&self) -> Publisher {
        self.routes.publisher()
    }

    /// Returns the version of this store at a revision.
    pub(crate) fn version(&self, revision: i64) -> Version {
        Version { store_id: self.store_id.clone(), epoch: self.epoch.clone(), revision }
    }
}
