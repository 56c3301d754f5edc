//! What the folder is, and its bounds.

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

/// See the module.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder.
    pub folder: PathBuf,
    /// Whether objects that were made of it and are no longer in it are deleted.
    pub prune: bool,
    /// How often it is looked at for changes.
    pub look_period: Duration,
    /// How often all of it is applied though nothing has changed in it; zero: never.
    pub resync_period: Duration,
    /// Files in it, at most.
    pub max_files: usize,
    /// Bytes of all its files, at most.
    pub max_bytes: u64,
}

impl Settings {
    /// The defaults for a folder.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            prune: false,
            look_period: Duration::from_secs(1),
            resync_period: Duration::from_secs(600),
            max_files: 10_000,
            max_bytes: 64 << 20,
        }
    }
}
