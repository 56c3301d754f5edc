//! A folder of manifests: applied before the server is ready, and followed.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, Args};
use portico_gostd::os::error_text;
use portico_server::ManifestsSettings;

use super::SettingError;
use super::values::{duration, positive_duration};

const FOLDER: &str = "--manifests";
const PRUNE: &str = "--manifests-prune";

/// Settings of the folder.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Folder of manifests (control service)"))]
pub(crate) struct Manifests {
    /// A folder of manifests (*.yaml, *.yml, *.json, subfolders, too): applied in the order of their paths before the server is
    /// ready, and again when they change.
    #[arg(long, value_name = "DIR")]
    pub(crate) manifests: Option<PathBuf>,
    /// Delete objects that were made of --manifests when they are no longer in it.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    manifests_prune: bool,
    /// How often --manifests is looked at for changes; SIGHUP has it looked at, too.
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "1s")]
    manifests_look_period: Duration,
    /// How often all of --manifests is applied though no file has changed, so that what others changed comes back; 0s = never.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
    manifests_resync_period: Duration,
    /// Files in --manifests, at most.
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000_000), default_value_t = 10_000)]
    manifests_max_files: usize,
    /// Bytes of all files in --manifests, at most.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..), default_value_t = 64 << 20)]
    manifests_max_bytes: u64,
}

impl Manifests {
    /// The folder, where there is one.
    pub(crate) fn settings(&self) -> Option<ManifestsSettings> {
        self.manifests.clone().map(|folder| self.of_folder(folder))
    }

    /// The same settings for this folder.
    pub(crate) fn of_folder(&self, folder: PathBuf) -> ManifestsSettings {
        ManifestsSettings {
            folder,
            prune: self.manifests_prune,
            look_period: self.manifests_look_period,
            resync_period: self.manifests_resync_period,
            max_files: self.manifests_max_files,
            max_bytes: self.manifests_max_bytes,
        }
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        let Some(folder) = &self.manifests else {
            let unused = self.manifests_prune;
            return if unused { Err(SettingError::new(PRUNE, format!("needs {FOLDER}"))) } else { Ok(()) };
        };
        let wrong = |error: std::io::Error| {
            SettingError::new(FOLDER, format!("{}: {}", folder.display(), error_text(&error)))
        };
        std::fs::read_dir(folder).map(drop).map_err(wrong)
    }
}
