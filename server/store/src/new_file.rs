//! Files that appear whole, under a name that no file has.

use std::fs;
use std::io;
use std::path::Path;

/// Renames without replacing: somebody else may have made the file meanwhile.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // Not every file system has second names.
        Err(error) => rename_unless_there(from, to, error),
    }
}

#[cfg(unix)]
fn rename_unless_there(from: &Path, to: &Path, _: io::Error) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from)
}

/// Only second names are certain to replace nothing here.
#[cfg(not(unix))]
fn rename_unless_there(_: &Path, _: &Path, error: io::Error) -> io::Result<()> {
    Err(error)
}

/// Makes a name in a folder durable.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    portico_kit::atomic_file::sync_folder(folder)
}
