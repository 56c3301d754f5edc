//! The temporary folder of a process that keeps nothing.

use std::path::Path;

use portico_gostd::os::error_text;
use tempfile::TempDir;

use super::failure::Failure;
use crate::settings::Settings;

/// A folder that is removed at the end.
pub(super) struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// Makes it and keeps the data there, if nothing is to be kept.
    ///
    /// # Errors
    /// [`Failure::Scratch`].
    pub(super) fn for_data(settings: &mut Settings) -> Result<Option<Self>, Failure> {
        if !settings.process.ephemeral {
            return Ok(None);
        }
        // It has mode 0700.
        let folder = tempfile::Builder::new().prefix("portico-").tempdir().map_err(Failure::Scratch)?;
        folder.path().clone_into(&mut settings.process.data_dir);
        Ok(Some(Self { folder }))
    }

    /// Removes it.
    pub(super) fn remove(self) {
        let path = self.folder.path().to_owned();
        if let Err(error) = self.folder.close() {
            say_left(&path, &error);
        }
    }
}

fn say_left(path: &Path, error: &std::io::Error) {
    tracing::error!(path = %path.display(), error = error_text(error), "the temporary folder stays behind");
}
