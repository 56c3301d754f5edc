//! Temporary data folder of `--ephemeral`.

use std::path::Path;

use portico_gostd::os::error_text;
use tempfile::TempDir;

use super::failure::Failure;
use crate::settings::Settings;

/// Temporary data folder of this process.
pub(super) struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// Creates a temporary folder and makes it the data folder if `--ephemeral` is set.
    ///
    /// # Errors
    /// Returns [`Failure::Scratch`] if the folder cannot be created.
    pub(super) fn for_data(settings: &mut Settings) -> Result<Option<Self>, Failure> {
        if !settings.process.ephemeral {
            return Ok(None);
        }
        // The folder has mode 0700.
        let folder = tempfile::Builder::new().prefix("portico-").tempdir().map_err(Failure::Scratch)?;
        folder.path().clone_into(&mut settings.process.data_dir);
        Ok(Some(Self { folder }))
    }

    /// Removes the folder. An error is only logged.
    pub(super) fn remove(self) {
        let path = self.folder.path().to_owned();
        if let Err(error) = self.folder.close() {
            log_left(&path, &error);
        }
    }
}

fn log_left(path: &Path, error: &std::io::Error) {
    tracing::error!(path = %path.display(), error = error_text(error), "cannot remove the temporary folder");
}
