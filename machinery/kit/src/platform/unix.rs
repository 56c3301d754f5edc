//! Implementation for Unix.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
pub use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

pub use tokio::net::UnixStream;

/// Returns the permission bits of a file.
#[must_use]
pub fn mode(file: &Metadata) -> u32 {
    file.permissions().mode() & 0o777
}

/// Sets the permission bits of a file or folder, independent of the umask.
///
/// # Errors
/// Returns the error of the file system.
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Sets the permission bits of an open file.
///
/// # Errors
/// Returns the error of the file system.
pub fn set_mode_of(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

/// Makes opening a symbolic link fail.
pub fn refuse_symlinks(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
}

/// Makes opening a pipe return without waiting for its writer.
pub fn non_blocking(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
}

/// True if this is a regular file that the user of this process owns and that has no other hard links.
#[must_use]
pub fn is_owned(file: &Metadata) -> bool {
    file.is_file() && file.nlink() == 1 && file.uid() == rustix::process::geteuid().as_raw()
}

/// Changes the owner and group of `to` to those of `from`.
///
/// # Errors
/// Returns the error of the file system: only root may change owners.
pub fn copy_owner(from: &Metadata, to: &Path) -> io::Result<()> {
    std::os::unix::fs::chown(to, Some(from.uid()), Some(from.gid()))
}

/// Changes the owner and group of a file that root has created to those of another file. Has no effect on files of other users.
///
/// # Errors
/// Returns the error of the file system.
pub fn match_owner(file: &File, reference: &Path) -> io::Result<()> {
    let (created, owner) = (file.metadata()?, fs::metadata(reference)?);
    if created.uid() != 0 || (created.uid(), created.gid()) == (owner.uid(), owner.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, Some(owner.uid()), Some(owner.gid()))
}

/// Identity of a file, independent of its name: device and inode.
pub type FileId = (u64, u64);

/// Returns the identity of the file at a path without opening it: closing a file releases the locks of the process on it.
///
/// # Errors
/// Returns the error of the file system.
pub fn file_id(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

/// Opens a folder, whose entries can then be synced.
///
/// # Errors
/// Returns the error of the file system.
pub fn open_folder(path: &Path) -> io::Result<Option<File>> {
    File::open(path).map(Some)
}

/// Version of a file, which changes when the file is written or replaced: inode, and times of changes of data and metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Returns the version of a file.
#[must_use]
pub fn file_version(file: &Metadata) -> FileVersion {
    let modified = (file.mtime(), file.mtime_nsec());
    FileVersion { inode: file.ino(), modified, changed: (file.ctime(), file.ctime_nsec()) }
}

/// True if the file is executable.
#[must_use]
pub fn is_program(file: &Metadata) -> bool {
    file.is_file() && mode(file) & 0o111 != 0
}

/// Allows other sockets to listen on the same port.
///
/// # Errors
/// Returns the error of the system.
pub fn share_port(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

/// Connects to a Unix socket.
///
/// # Errors
/// Returns the error of the system.
pub async fn connect(socket: impl AsRef<Path>) -> io::Result<UnixStream> {
    UnixStream::connect(socket).await
}
