//! When a file is put aside, what is kept of those that were, and whose they are.

use std::fs;
use std::path::Path;

use crate::platform;

/// How a file is put aside, and what is kept of what was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// How large the file becomes; 0 never puts it aside.
    pub max_bytes: u64,
    /// How many days files are kept that were put aside; 0 keeps them.
    pub max_age_days: u32,
    /// How many of them are kept; 0 keeps all.
    pub max_backups: usize,
    /// Whether they are compressed with gzip.
    pub compress: bool,
}

/// Only root may give files away: others own what they write already.
pub(super) fn copy_owner(old: &fs::Metadata, new: &Path) {
    if let Err(error) = platform::copy_owner(old, new) {
        tracing::debug!(path = %new.display(), %error, "cannot copy the owner of a log file");
    }
}
