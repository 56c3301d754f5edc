//! Settings of log rotation, and the owner of rotated files.

use std::fs;
use std::path::Path;

use crate::platform;

/// Settings of log rotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// Maximum size of the file in bytes; 0 disables rotation.
    pub max_bytes: u64,
    /// Maximum age of backups in days; 0 sets no limit.
    pub max_age_days: u32,
    /// Maximum number of backups; 0 keeps all.
    pub max_backups: usize,
    /// True if backups are compressed with gzip.
    pub compress: bool,
}

/// Copies the owner of the old file. Only root may change owners; for other users the new file already has the right owner.
pub(super) fn copy_owner(old: &fs::Metadata, new: &Path) {
    if let Err(error) = platform::copy_owner(old, new) {
        tracing::debug!(path = %new.display(), %error, "cannot copy the owner of a log file");
    }
}
