//! A temporary folder that is removed when this process ends for any reason: statics are not dropped, and a process ended by a
//! signal drops nothing.

use std::io::Result;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Script that waits for the end of its input, then removes the folder; several times, because programs that end with this
/// process may still write their last files. The script also receives Ctrl-C.
const SWEEP: &str = r#"trap '' INT TERM HUP
cat >/dev/null
for attempt in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$0" && exit; sleep 1; done"#;

/// A folder that every user may write to.
pub(crate) struct SweptFolder {
    path: PathBuf,
    sweeper: Child,
}

impl SweptFolder {
    /// Creates a folder whose name has this prefix.
    pub(crate) fn new(prefix: &str) -> Result<Self> {
        let path = tempfile::Builder::new().prefix(prefix).tempdir()?.keep();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777))?;
        let mut sweep = Command::new("sh");
        sweep.arg("-c").arg(SWEEP).arg(&path);
        let sweeper = sweep.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self { path, sweeper })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SweptFolder {
    fn drop(&mut self) {
        drop(self.sweeper.stdin.take());
        // Remaining files are left to the system.
        let _status = self.sweeper.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::SweptFolder;

    #[test]
    fn a_folder_is_removed_with_its_content() {
        let folder = SweptFolder::new("portico-swept-").unwrap();
        let path = folder.path().to_owned();
        std::fs::create_dir_all(path.join("data/base")).unwrap();
        std::fs::write(path.join("data/base/1"), "x").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
