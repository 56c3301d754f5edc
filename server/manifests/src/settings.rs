//! Settings and limits of the manifests folder.

use std::path::PathBuf;
use std::time::Duration;

/// Levels of folders in the manifests folder.
///
/// Limit (Manifests): the folder is not applied; `/readyz/manifests` and the log report it.
pub const MAX_DEPTH: usize = 8;
/// Size of a file in the manifests folder.
///
/// Limit (Manifests, bytes): the file is a fault; other files are applied.
pub const MAX_FILE_BYTES: u64 = 16 << 20;
/// Documents in the manifests folder.
///
/// Limit (Manifests): the folder is not applied; `/readyz/manifests` and the log report it.
pub const MAX_DOCUMENTS: usize = 20_000;

#[derive(Clone, Debug)]
pub struct Settings {
    pub folder: PathBuf,
    /// True if objects are deleted after their manifests are removed.
    pub prune: bool,
    /// Interval between checks for changes.
    pub poll_interval: Duration,
    /// Interval at which all documents are applied again without changes; zero disables it.
    pub resync_period: Duration,
    /// Maximum number of files.
    pub max_files: usize,
    /// Maximum total size of all files in bytes.
    pub max_bytes: u64,
}

impl Settings {
    /// Returns the defaults for a folder.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            prune: false,
            poll_interval: Duration::from_secs(1),
            resync_period: Duration::from_secs(600),
            max_files: 10_000,
            max_bytes: 64 << 20,
        }
    }
}
