//! Atomic creation of complete files under names that do not exist yet.

use std::fs;
use std::io;
use std::path::Path;

/// Renames a file without replacing an existing one: another process may have created the target concurrently.
pub(crate) fn rename_noreplace(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // Some file systems have no hard links.
        Err(error) => rename_without_link(from, to, error),
    }
}

#[cfg(unix)]
fn rename_without_link(from: &Path, to: &Path, _: io::Error) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from)
}

/// Fails: only hard links reliably replace nothing on this platform.
#[cfg(not(unix))]
fn rename_without_link(_: &Path, _: &Path, error: io::Error) -> io::Result<()> {
    Err(error)
}

/// Makes the directory entry of a file durable.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    portico_kit::atomic_file::sync_folder(folder)
}
