//! Systems that are not Unix.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// The mode of files that are about to be made: nothing here.
pub trait OpenOptionsExt {
    /// Nothing.
    fn mode(&mut self, mode: u32) -> &mut Self;
}

impl OpenOptionsExt for OpenOptions {
    fn mode(&mut self, _: u32) -> &mut Self {
        self
    }
}

/// The mode of folders that are about to be made: nothing here.
pub trait DirBuilderExt {
    /// Nothing.
    fn mode(&mut self, mode: u32) -> &mut Self;
}

impl DirBuilderExt for DirBuilder {
    fn mode(&mut self, _: u32) -> &mut Self {
        self
    }
}

/// Nothing is ever sent over one.
pub type UnixStream = tokio::io::DuplexStream;

/// No bits.
#[must_use]
pub fn mode(_: &Metadata) -> u32 {
    0
}

/// Nothing.
///
/// # Errors
/// None.
pub fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

/// Nothing.
///
/// # Errors
/// None.
pub fn set_mode_of(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}

/// Whether this is a file: whose it is is not known.
#[must_use]
pub fn is_own(file: &Metadata) -> bool {
    file.is_file()
}

/// Returns the options unchanged.
pub fn no_links(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Returns the options unchanged.
pub fn without_blocking(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Nothing.
///
/// # Errors
/// None.
pub fn copy_owner(_: &Metadata, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Nothing.
///
/// # Errors
/// None.
pub fn give(_: &File, _: &Path) -> io::Result<()> {
    Ok(())
}

/// A symbolic link to a file.
///
/// # Errors
/// What the system says: it may be refused to those who are no administrators.
#[cfg(windows)]
pub fn symlink(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    std::os::windows::fs::symlink_file(original, link)
}

/// Which file it is, whatever its name.
pub type FileId = same_file::Handle;

/// Which file a name leads to.
///
/// # Errors
/// What the file system says.
pub fn file_id(path: &Path) -> io::Result<FileId> {
    FileId::from_path(path)
}

/// None: the system keeps names by itself, and opens no folders.
///
/// # Errors
/// None.
pub fn open_folder(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// What changes when a file is written or replaced: when it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(Option<SystemTime>);

/// That of a file.
#[must_use]
pub fn version(file: &Metadata) -> Version {
    Version(file.modified().ok())
}

/// Whether it is a file: their names decide which ones may be run.
#[must_use]
pub fn is_program(file: &Metadata) -> bool {
    file.is_file()
}

/// Ports are not shared here.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`].
pub fn share_port(_: &socket2::Socket) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "ports cannot be shared on this system"))
}

/// There are no Unix sockets here.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`].
pub async fn connect(_: impl AsRef<Path>) -> io::Result<UnixStream> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "there are no Unix sockets on this system"))
}
