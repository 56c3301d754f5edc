//! Flags of the manifest directory.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, Args};
use portico_gostd::os::error_text;
use portico_server::ManifestsSettings;

use super::SettingError;
use super::values::{duration, positive_duration};

const FOLDER: &str = "--manifests";

/// Flags of the manifest directory.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Manifests"))]
pub(crate) struct Manifests {
    /// Directory of manifests to apply before the server is ready, and whenever they change.
    ///
    /// Files *.yaml, *.yml and *.json in the directory and its subdirectories are applied in the order of their paths.
    #[arg(long, value_name = "DIR")]
    pub(crate) manifests: Option<PathBuf>,
    /// Delete objects created from --manifests once their manifests are removed.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    manifests_prune: bool,
    /// Interval at which --manifests is checked for changes; SIGHUP checks at once.
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "1s")]
    manifests_look_period: Duration,
    /// Interval at which unchanged manifests are applied again, which reverts changes by clients; 0s = never.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
    manifests_resync_period: Duration,
    /// Maximum number of files in --manifests.
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000_000), default_value_t = 10_000)]
    manifests_max_files: usize,
    /// Maximum total size of the files in --manifests, in bytes.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..), default_value_t = 64 << 20)]
    manifests_max_bytes: u64,
}

impl Manifests {
    /// Returns the settings of the manifest directory, if configured.
    pub(crate) fn settings(&self) -> Option<ManifestsSettings> {
        self.manifests.clone().map(|folder| self.for_folder(folder))
    }

    /// Returns the settings for the manifest directory `folder`.
    pub(crate) fn for_folder(&self, folder: PathBuf) -> ManifestsSettings {
        ManifestsSettings {
            folder,
            prune: self.manifests_prune,
            poll_interval: self.manifests_look_period,
            resync_period: self.manifests_resync_period,
            max_files: self.manifests_max_files,
            max_bytes: self.manifests_max_bytes,
        }
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        let Some(folder) = &self.manifests else { return Ok(()) };
        let invalid = |error: std::io::Error| {
            SettingError::new(FOLDER, format!("{}: {}", folder.display(), error_text(&error)))
        };
        std::fs::read_dir(folder).map(drop).map_err(invalid)
    }
}
