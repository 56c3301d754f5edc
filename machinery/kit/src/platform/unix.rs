//! Unix.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
pub use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

pub use tokio::net::UnixStream;

/// The permission bits of a file.
#[must_use]
pub fn mode(file: &Metadata) -> u32 {
    file.permissions().mode() & 0o777
}

/// Gives a file or folder these permission bits, whatever the process's umask is.
///
/// # Errors
/// What the file system says.
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// The same for an open file.
///
/// # Errors
/// What the file system says.
pub fn set_mode_of(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

/// Opens no symbolic link in place of a file.
pub fn no_links(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
}

/// Opens a pipe without waiting for its writer.
pub fn without_blocking(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
}

/// Whether this is a file that belongs to this process's user, under one name alone.
#[must_use]
pub fn is_own(file: &Metadata) -> bool {
    file.is_file() && file.nlink() == 1 && file.uid() == rustix::process::geteuid().as_raw()
}

/// Gives a file to the owner of another one.
///
/// # Errors
/// What the file system says: only root may give files away.
pub fn copy_owner(from: &Metadata, to: &Path) -> io::Result<()> {
    std::os::unix::fs::chown(to, Some(from.uid()), Some(from.gid()))
}

/// Gives a file that root has made to the owner of another one; nothing for anybody else.
///
/// # Errors
/// What the file system says.
pub fn give(file: &File, like: &Path) -> io::Result<()> {
    let (made, like) = (file.metadata()?, fs::metadata(like)?);
    if made.uid() != 0 || (made.uid(), made.gid()) == (like.uid(), like.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, Some(like.uid()), Some(like.gid()))
}

/// Which file it is, whatever its name: its file system, and its number there.
pub type FileId = (u64, u64);

/// Which file a name leads to. It is not opened: closing a file lets go of locks that the process has on it.
///
/// # Errors
/// What the file system says.
pub fn file_id(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

/// The folder whose names are to be on the disk.
///
/// # Errors
/// What the file system says.
pub fn open_folder(path: &Path) -> io::Result<Option<File>> {
    File::open(path).map(Some)
}

/// What changes when a file is written or replaced: its number, and when it and its metadata were changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// That of a file.
#[must_use]
pub fn version(file: &Metadata) -> Version {
    let modified = (file.mtime(), file.mtime_nsec());
    Version { inode: file.ino(), modified, changed: (file.ctime(), file.ctime_nsec()) }
}

/// Whether a file may be run.
#[must_use]
pub fn is_program(file: &Metadata) -> bool {
    file.is_file() && mode(file) & 0o111 != 0
}

/// Lets other sockets listen on the same port.
///
/// # Errors
/// What the system says.
pub fn share_port(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

/// Connects to a Unix socket.
///
/// # Errors
/// What the system says.
pub async fn connect(socket: impl AsRef<Path>) -> io::Result<UnixStream> {
    UnixStream::connect(socket).await
}
