//! Implementation for systems other than Unix.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Mode of new files; has no effect on this system.
pub trait OpenOptionsExt {
    fn mode(&mut self, mode: u32) -> &mut Self;
}

impl OpenOptionsExt for OpenOptions {
    fn mode(&mut self, _: u32) -> &mut Self {
        self
    }
}

/// Mode of new folders; has no effect on this system.
pub trait DirBuilderExt {
    fn mode(&mut self, mode: u32) -> &mut Self;
}

impl DirBuilderExt for DirBuilder {
    fn mode(&mut self, _: u32) -> &mut Self {
        self
    }
}

/// Placeholder for Unix sockets, which are never connected on this system.
pub type UnixStream = tokio::io::DuplexStream;

/// Returns 0, because files have no permission bits on this system.
#[must_use]
pub fn mode(_: &Metadata) -> u32 {
    0
}

/// Has no effect on this system and never fails.
pub fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

/// Has no effect on this system and never fails.
pub fn set_mode_of(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}

/// True if this is a regular file; its owner is not known on this system.
#[must_use]
pub fn is_owned(file: &Metadata) -> bool {
    file.is_file()
}

/// Returns the options unchanged.
pub fn refuse_symlinks(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Returns the options unchanged.
pub fn non_blocking(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Has no effect on this system and never fails.
pub fn copy_owner(_: &Metadata, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Has no effect on this system and never fails.
pub fn match_owner(_: &File, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Creates a symbolic link to a file.
///
/// # Errors
/// Returns the error of the system, which may refuse links of users who are not administrators.
#[cfg(windows)]
pub fn symlink(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    std::os::windows::fs::symlink_file(original, link)
}

/// Identity of a file, independent of its name.
pub type FileId = same_file::Handle;

/// Returns the identity of the file at a path.
///
/// # Errors
/// Returns the error of the file system.
pub fn file_id(path: &Path) -> io::Result<FileId> {
    FileId::from_path(path)
}

/// Returns `None` and never fails: the system syncs folders by itself and cannot open them.
pub fn open_folder(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// Version of a file, which changes when the file is written or replaced: its modification time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion(Option<SystemTime>);

/// Returns the version of a file.
#[must_use]
pub fn file_version(file: &Metadata) -> FileVersion {
    FileVersion(file.modified().ok())
}

/// True if this is a regular file. File names determine which files are executable on this system.
#[must_use]
pub fn is_program(file: &Metadata) -> bool {
    file.is_file()
}

/// Fails, because ports cannot be shared on this system.
///
/// # Errors
/// Returns [`io::ErrorKind::Unsupported`].
pub fn share_port(_: &socket2::Socket) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "ports cannot be shared on this system"))
}

/// Fails, because Unix sockets do not exist on this system.
///
/// # Errors
/// Returns [`io::ErrorKind::Unsupported`].
pub async fn connect(_: impl AsRef<Path>) -> io::Result<UnixStream> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "there are no Unix sockets on this system"))
}
