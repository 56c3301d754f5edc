//! Atomic replacement of files: the content is written to a temporary file in the same folder, synced, and renamed.
//!
//! A reader sees the old content or the new, never a part. This module does not depend on the content.
//!
//! Syncing takes most of the time for a small file. A process whose files need not survive a crash of the machine can
//! disable it for all of them ([`disable_sync`]).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::platform::{self, DirBuilderExt, OpenOptionsExt};

/// Mode of files that hold keys or credentials.
pub const PRIVATE_MODE: u32 = 0o600;
/// Mode of files that anyone may read (certificates, addresses).
pub const PUBLIC_MODE: u32 = 0o644;

/// True if this process syncs files and folders to the disk.
static SYNC_ENABLED: AtomicBool = AtomicBool::new(true);

/// Disables syncing for this process. Files written afterwards survive a crash of the process, but may be lost or
/// incomplete after a crash of the machine.
pub fn disable_sync() {
    SYNC_ENABLED.store(false, Ordering::Relaxed);
}

/// Syncs a file to the disk, unless syncing is disabled.
///
/// # Errors
/// Returns the error of the file system.
pub fn sync(file: &File) -> io::Result<()> {
    if SYNC_ENABLED.load(Ordering::Relaxed) { file.sync_all() } else { Ok(()) }
}

/// Replaces `path` by `content` with `mode`: temporary file in the same folder, fsync, rename, fsync
/// of the folder. On an error the temporary file is removed and the target is unchanged.
pub fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let temporary = temporary_path(path);
    let result = write_synced(&temporary, content, mode).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = result {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    sync_folder(folder_of(path))
}

/// Creates `path` and its missing parents with mode 0700, and restricts an existing folder to 0700.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    platform::set_mode(path, 0o700)
}

/// Syncs the entries of a folder to the disk, unless syncing is disabled.
///
/// # Errors
/// Returns the error of the file system.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    platform::open_folder(folder)?.map_or(Ok(()), |folder| sync(&folder))
}

fn write_synced(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    // The umask of the process may have cleared bits.
    platform::set_mode_of(&file, mode)?;
    file.write_all(content)?;
    sync(&file)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn temporary_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    folder_of(path).join(format!(".{name}.{:016x}.tmp", rand::random::<u64>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_with_its_mode_and_leaves_no_rest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.pem");
        write(&path, b"old", PUBLIC_MODE).unwrap();
        write(&path, b"new", PRIVATE_MODE).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(platform::mode(&fs::metadata(&path).unwrap()), 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_the_target_and_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("taken");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("x"), b"x").unwrap();
        assert!(write(&path, b"new", PUBLIC_MODE).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(path.is_dir());
    }

    #[test]
    fn a_private_folder_is_made_and_an_open_one_is_narrowed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        create_private_dir(&path).unwrap();
        platform::set_mode(&path, 0o755).unwrap();
        create_private_dir(&path).unwrap();
        assert_eq!(platform::mode(&fs::metadata(&path).unwrap()), 0o700);
    }
}
