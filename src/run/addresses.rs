//! `--addresses-file`: writes the bound addresses to a file, for tests and scripts that use port 0.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use portico_gostd::os::error_text;
use portico_kit::atomic_file;
use serde::Serialize;

/// Addresses file, if configured.
pub(super) struct AddressesFile {
    path: Option<PathBuf>,
}

#[derive(Serialize)]
struct Addresses {
    #[serde(skip_serializing_if = "Option::is_none")]
    https: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grpc: Option<SocketAddr>,
    pid: u32,
}

impl AddressesFile {
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self { path }
    }

    /// Writes the file atomically; addresses that the role does not serve are left out.
    pub(super) fn write(&self, https: Option<SocketAddr>, grpc: Option<SocketAddr>) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let text = serde_json::to_vec(&Addresses { https, grpc, pid: std::process::id() })?;
        atomic_file::write(path, &text, 0o644)
    }

    /// Removes the file if it exists.
    pub(super) fn remove(&self) {
        let Some(path) = &self.path else { return };
        if let Err(error) = std::fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), error = error_text(&error), "cannot remove the addresses file");
        }
    }
}
