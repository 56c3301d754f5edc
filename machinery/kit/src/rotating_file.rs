//! Log file with rotation by size, with lumberjack's file names: `audit.log` is renamed to
//! `audit-2006-01-02T15-04-05.000.log`, and the oldest of these backups are removed.
//!
//! Rotation blocks while old files are compressed. Does not depend on the content.

mod backups;
mod rotation;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::line_writer::LineSink;
use crate::platform::{self, OpenOptionsExt};
pub use rotation::Rotation;
use rotation::copy_owner;

/// File that is rotated when it reaches its maximum size.
pub struct RotatingFile {
    path: PathBuf,
    rotation: Rotation,
    file: File,
    size: u64,
    /// True if it is not a pipe or a terminal, whose reader may be slow.
    is_regular: bool,
}

impl RotatingFile {
    /// Opens the file for appending. Creates it, readable only for its owner, and its folder if necessary.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).create(folder)?;
        }
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let metadata = file.metadata()?;
        let (size, is_regular) = (metadata.len(), metadata.is_file());
        let this = Self { path: path.to_owned(), rotation, file, size, is_regular };
        this.clean_up_backups();
        Ok(this)
    }

    fn is_full_for(&self, length: u64) -> bool {
        let max = self.rotation.max_bytes;
        max > 0 && self.size.saturating_add(length) > max
    }

    /// Renames the file to a backup and creates a new file with the same mode and owner.
    fn rotate(&mut self) -> io::Result<()> {
        let old = self.file.metadata()?;
        fs::rename(&self.path, backups::backup_path(&self.path, Timestamp::now()))?;
        let mode = platform::mode(&old);
        let file = OpenOptions::new().create(true).append(true).mode(mode).open(&self.path)?;
        copy_owner(&old, &self.path);
        (self.file, self.size) = (file, 0);
        self.clean_up_backups();
        Ok(())
    }

    /// Removes and compresses backups. Failures are logged and retried at the next rotation.
    fn clean_up_backups(&self) {
        if let Err(error) = backups::clean_up(&self.path, &self.rotation, Timestamp::now()) {
            let path = self.path.display();
            tracing::warn!(%path, %error, "cannot remove or compress old log files");
        }
    }
}

impl Write for RotatingFile {
    /// Writes all bytes into one file, after rotating it if necessary.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (length, max) = (bytes.len() as u64, self.rotation.max_bytes);
        if max > 0 && length > max {
            let words = format!("write length {length} exceeds maximum file size {max}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        if self.is_full_for(length) {
            self.rotate()?;
        }
        self.file.write_all(bytes)?;
        self.size = self.size.saturating_add(length);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl LineSink for RotatingFile {
    /// True unless the file has to be rotated first.
    fn is_quick(&self, bytes: usize) -> bool {
        self.is_regular && !self.is_full_for(bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_full_file_is_rotated_and_a_line_is_never_split() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/audit.log");
        let rotation = Rotation { max_bytes: 10, max_backups: 0, ..Rotation::default() };
        let mut file = RotatingFile::open(&path, rotation).unwrap();
        file.write_all(b"12345\n").unwrap();
        assert!(file.is_quick(4) && !file.is_quick(5), "a write that rotates the file is not quick");
        file.write_all(b"6789\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"6789\n");
        let names = names(path.parent().unwrap());
        assert_eq!((names.len(), names[1].as_str()), (2, "audit.log"));
        assert_eq!(names[0].len(), "audit-2006-01-02T15-04-05.000.log".len());
        let refused = file.write_all(b"12345678901").unwrap_err();
        assert_eq!(refused.to_string(), "write length 11 exceeds maximum file size 10");
        assert_eq!(platform::mode(&fs::metadata(&path).unwrap()), 0o600);
    }

    #[test]
    fn an_existing_file_is_appended_to_and_its_size_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        for line in [b"one\n", b"two\n"] {
            RotatingFile::open(&path, Rotation::default()).unwrap().write_all(line).unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\n");
        let rotation = Rotation { max_bytes: 9, ..Rotation::default() };
        RotatingFile::open(&path, rotation).unwrap().write_all(b"three\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three\n");
    }
}
