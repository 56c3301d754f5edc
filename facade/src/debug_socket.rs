//! `--debug-socket-path`: profiles and the log's level over a Unix socket that asks nobody who they are (`routes.DebugSocket`).
//!
//! Whoever may write to the socket is its owner: it has mode 0600 before it has its name.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use portico_kit::backoff::{Backoff, Policy};
use portico_kit::tasks::TaskSet;
use tokio::net::UnixListener;
use tokio::sync::Semaphore;

/// Connections to the debug socket.
///
/// Limit (Serving): further connections wait in the kernel.
const MAX_CONNECTIONS: usize = 16;
/// How long a request's head may take to come.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const MODE: u32 = 0o600;

/// The socket's file, which goes when the socket does, unless somebody else has taken its path meanwhile: a server that was
/// started before this one has ended serves there.
struct File {
    path: PathBuf,
    /// Device and inode, which the file keeps when it is renamed, and no other file gets while the socket is open.
    identity: (u64, u64),
}

impl File {
    fn of(path: PathBuf) -> io::Result<Self> {
        let identity = identity(&path)?;
        Ok(Self { path, identity })
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            // Somebody else may have removed it, and nothing is lost when it stays.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Of what has this name itself, not of what a link leads to.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Serves a router at a path until the tasks end. What stands in its way is logged, as upstream does, and the facade serves
/// without the socket.
pub fn serve(path: &Path, router: Router, tasks: &TaskSet) {
    match bind(path) {
        Ok((listener, file)) => {
            tracing::info!(path = %path.display(), "serving the debug socket");
            let connections = tasks.clone();
            tasks.spawn_until_cancelled("debug-socket", accept(listener, file, router, connections));
        }
        Err(error) => {
            let error = portico_gostd::os::error_text(&error);
            tracing::error!(path = %path.display(), error, "cannot serve the debug socket");
        }
    }
}

/// Takes the place of another socket of this name. Any other file stays.
fn bind(path: &Path) -> io::Result<(UnixListener, File)> {
    if std::fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket()) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists and is not a socket"));
    }
    let mut made = path.as_os_str().to_owned();
    made.push(format!(".{}", std::process::id()));
    let made = PathBuf::from(made);
    // A process of this number may have left it when it was killed.
    match std::fs::remove_file(&made) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&made)?;
    let mut file = File::of(made)?;
    std::fs::set_permissions(&file.path, std::fs::Permissions::from_mode(MODE))?;
    std::fs::rename(&file.path, path)?;
    path.clone_into(&mut file.path);
    Ok((listener, file))
}

async fn accept(listener: UnixListener, file: File, router: Router, tasks: TaskSet) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut errors = Backoff::new(Policy::ACCEPT);
    // It is never closed.
    while let Ok(place) = places.clone().acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => {
                errors.reset();
                stream
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection to the debug socket, retrying");
                tokio::time::sleep(errors.next_wait()).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        tasks.spawn_until_cancelled("debug-socket-connection", async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
            if let Err(error) = http.serve_connection(TokioIo::new(stream), service).await {
                tracing::debug!(%error, "connection to the debug socket failed");
            }
            drop(place);
        });
    }
    drop(file);
}
