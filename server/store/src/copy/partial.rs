//! File of a backup in progress: written by one process at a time, and resumed after an interruption.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use portico_kit::platform::{self, OpenOptionsExt};

use super::block::Checksum;
use super::error::CopyError;
use super::file::{ArchiveProgress, BackupCounts, BackupFile, BackupWriter, Header};
use crate::key::Key;
use crate::new_file::{rename_noreplace, sync_folder_of};

/// Access for the owner only: the file contains Secrets.
const MODE: u32 = 0o600;

/// Incomplete backup: `FILE.partial`.
pub(crate) struct PartialFile {
    file: File,
    path: PathBuf,
    target: PathBuf,
}

/// Content of an incomplete backup from an earlier attempt.
pub(crate) struct PartialContent {
    pub(crate) header: Header,
    pub(crate) last: Option<Key>,
    pub(crate) counts: BackupCounts,
    /// Progress in the archive; `None` before all objects are complete.
    pub(crate) archive: Option<ArchiveProgress>,
    complete_prefix: (u64, Checksum),
}

impl PartialFile {
    /// Opens or creates the file with an exclusive lock.
    pub(crate) fn open(target: &Path) -> Result<Self, CopyError> {
        let mut name = target.as_os_str().to_owned();
        name.push(".partial");
        let path = PathBuf::from(name);
        let failed = |error| CopyError::File { path: path.clone(), error };
        if target.exists() {
            return Err(CopyError::Exists(target.to_owned()));
        }
        let file = open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(CopyError::Busy(path)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // The process that held the lock may have published the file.
        if target.exists() {
            return Err(CopyError::Exists(target.to_owned()));
        }
        Ok(Self { file, path, target: target.to_owned() })
    }

    /// Reads the content of an earlier attempt; `None` if there is none, or none that can be read.
    pub(crate) fn read_existing(&mut self) -> Result<Option<PartialContent>, CopyError> {
        if self.file.metadata().map_err(|error| self.file_error(error))?.len() == 0 {
            return Ok(None);
        }
        self.file.seek(SeekFrom::Start(0)).map_err(|error| self.file_error(error))?;
        let Ok(mut backup) = BackupFile::read(BufReader::new(&self.file)) else { return Ok(None) };
        let complete_prefix = backup.complete_prefix();
        let mut found = PartialContent {
            header: backup.header().clone(),
            last: None,
            counts: backup.counts(),
            archive: None,
            complete_prefix,
        };
        while let Ok(Some(_)) = backup.next_part() {
            (found.last, found.archive) = (backup.last().cloned(), backup.archive().cloned());
            (found.counts, found.complete_prefix) = (backup.counts(), backup.complete_prefix());
        }
        Ok(Some(found))
    }

    /// Returns a writer that continues after the content.
    pub(crate) fn resume(
        &mut self,
        found: &PartialContent,
    ) -> Result<BackupWriter<BufWriter<&File>>, CopyError> {
        let (length, sum) = found.complete_prefix;
        let truncated = self.file.set_len(length).and_then(|()| (&self.file).seek(SeekFrom::Start(length)));
        truncated.map_err(|error| self.file_error(error))?;
        Ok(BackupWriter::resume(BufWriter::new(&self.file), sum, found.counts))
    }

    /// Returns a writer that starts a new backup.
    pub(crate) fn begin(
        &mut self,
        header: &Header,
        with_archive: bool,
    ) -> Result<BackupWriter<BufWriter<&File>>, CopyError> {
        let truncated = self.file.set_len(0).and_then(|()| (&self.file).seek(SeekFrom::Start(0)));
        let writer =
            truncated.and_then(|_| BackupWriter::begin(BufWriter::new(&self.file), header, with_archive));
        writer.map_err(|error| self.file_error(error))
    }

    /// Renames the file to its final name and syncs it. Returns its size in bytes.
    pub(crate) fn publish(self) -> Result<u64, CopyError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => CopyError::Exists(self.target.clone()),
            _ => CopyError::File { path: self.target.clone(), error },
        };
        self.file.sync_all().map_err(|error| self.file_error(error))?;
        let bytes = self.file.metadata().map_err(|error| self.file_error(error))?.len();
        rename_noreplace(&self.path, &self.target).map_err(failed)?;
        sync_folder_of(&self.target).map_err(failed)?;
        Ok(bytes)
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, which contains no useful data.
    pub(crate) fn remove(self) {
        if let Err(error) = fs::remove_file(&self.path) {
            let error = portico_gostd::os::error_text(&error);
            tracing::warn!(path = %self.path.display(), error, "cannot remove a partial backup");
        }
    }

    pub(crate) fn file_error(&self, error: io::Error) -> CopyError {
        CopyError::File { path: self.path.clone(), error }
    }
}

/// Opens or creates the file. Rejects or restricts a file that other users can access: Secrets are written to it.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = platform::refuse_symlinks(options.read(true).write(true)).mode(MODE);
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        result => return result,
    }
    check_owner(&fs::symlink_metadata(path)?)?;
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    // The path may refer to another file by now.
    check_owner(&metadata)?;
    if platform::mode(&metadata) & 0o077 != 0 {
        platform::set_mode_of(&file, MODE)?;
    }
    Ok(file)
}

fn check_owner(file: &fs::Metadata) -> io::Result<()> {
    if platform::is_owned(file) {
        return Ok(());
    }
    let reason = "not a regular file of this user: remove the path or choose another one";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}
