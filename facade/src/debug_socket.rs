//! `--debug-socket-path`: profiles and the log level over a Unix socket without authentication (`routes.DebugSocket`).
//!
//! Only the owner of the socket can connect: it has mode 0600 before it gets its name.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_kit::tasks::TaskSet;
use tokio::net::UnixListener;
use tokio::sync::Semaphore;

/// Connections to the debug socket.
///
/// Limit (Serving): further connections wait in the kernel.
const MAX_CONNECTIONS: usize = 16;
/// Timeout for a request head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const MODE: u32 = 0o600;

/// File of the socket. It is removed with the socket, unless another file has taken its path: that of a server that was started
/// before this one ended.
struct SocketFile {
    path: PathBuf,
    /// Device and inode: the file keeps them when it is renamed, and no other file gets them while the socket is open.
    identity: (u64, u64),
}

impl SocketFile {
    fn new(path: PathBuf) -> io::Result<Self> {
        let identity = identity(&path)?;
        Ok(Self { path, identity })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|current| current == self.identity) {
            // The file may be gone already, and a file that stays does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Identity of the file itself, not of the target of a symbolic link.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Serves a router at a path until the tasks end. Errors are logged, as upstream does, and the facade continues without
/// the socket.
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

/// Binds the socket. Replaces another socket at this path; refuses to replace any other file.
fn bind(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    if std::fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.file_type().is_socket()) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists and is not a socket"));
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}", std::process::id()));
    let temporary_path = PathBuf::from(temporary);
    // A killed process with this ID may have left the file.
    match std::fs::remove_file(&temporary_path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&temporary_path)?;
    let mut file = SocketFile::new(temporary_path)?;
    std::fs::set_permissions(&file.path, std::fs::Permissions::from_mode(MODE))?;
    std::fs::rename(&file.path, path)?;
    path.clone_into(&mut file.path);
    Ok((listener, file))
}

async fn accept(listener: UnixListener, file: SocketFile, router: Router, tasks: TaskSet) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut errors = Backoff::new(BackoffPolicy::ACCEPT);
    // The semaphore is never closed.
    while let Ok(permit) = permits.clone().acquire_owned().await {
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
            drop(permit);
        });
    }
    drop(file);
}
