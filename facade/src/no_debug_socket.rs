//! `--debug-socket-path` on systems without Unix sockets.

use std::path::Path;

use axum::Router;
use portico_kit::tasks::TaskSet;

/// Logs an error and serves nothing.
pub fn serve(path: &Path, _: Router, _: &TaskSet) {
    let path = path.display();
    tracing::error!(%path, "cannot serve the debug socket: this system has no Unix sockets");
}
