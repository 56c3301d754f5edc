//! What every Config stream is fed from.

use portico_kit::lifecycle::Signal;
use portico_proto::convert::Version;
use portico_routes::{Publisher, Routes};
use tokio::sync::watch;

use super::board::Board;

/// See the module.
pub(crate) struct Sources {
    /// Compiled routes.
    pub(crate) routes: Routes,
    /// Everything that is no route.
    pub(crate) board: Board,
    /// Given once every role and binding is on the board.
    pub(crate) policy_known: Signal,
    /// Given once every check is on the board.
    pub(crate) checks_known: Signal,
    /// The store's identity and epoch; the revision is the routes'.
    pub(crate) store_id: String,
    /// See [`Version::epoch`].
    pub(crate) epoch: String,
    /// The store's revision as it moves: what concerns no facade still moves their version.
    pub(crate) revisions: watch::Receiver<i64>,
}

impl Sources {
    pub(super) fn publisher(&self) -> Publisher {
        self.routes.publisher()
    }

    /// The version of this store at a revision.
    pub(crate) fn version(&self, revision: i64) -> Version {
        Version { store_id: self.store_id.clone(), epoch: self.epoch.clone(), revision }
    }
}
