//! `--debug-socket-path` where there are no Unix sockets.

use std::path::Path;

use axum::Router;
use portico_kit::tasks::TaskSet;

/// Serves nothing, and says so.
pub fn serve(path: &Path, _: Router, _: &TaskSet) {
    let path = path.display();
    tracing::error!(%path, "cannot serve the debug socket: this system has no Unix sockets");
}
