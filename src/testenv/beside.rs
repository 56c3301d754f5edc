//! Several servers of one folder, as several kube-apiservers of one etcd: the first keeps the state, the others are facades of it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portico_gostd::os::error_text;
use portico_kit::platform::{DirBuilderExt, OpenOptionsExt};

use crate::settings::SettingError;

/// Locked by whoever starts, so that they find out which one they are one after the other.
const STARTING: &str = "starting.lock";
/// Locked by the first as long as it lives, however it ends.
const FIRST: &str = "first.lock";
/// What the first writes once others can be its facades.
const KUBECONFIG: &str = "facade.kubeconfig";

/// How long the first may take until others can follow it: far beyond what a start takes, for busy machines.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked for.
const PERIOD: Duration = Duration::from_millis(20);

/// Which of several servers this is.
#[derive(Debug)]
pub(super) enum Position {
    /// The first, for as long as this file is open.
    First(File),
    /// A facade of the first, by this kubeconfig.
    FacadeOf(PathBuf),
}

/// Becomes the first in this folder, which is made, or waits until the first can be followed.
///
/// # Errors
/// The folder cannot be used, or the first one cannot be followed in time.
pub(super) fn position_in(folder: &Path) -> Result<Position, SettingError> {
    let failed = |error: io::Error| {
        SettingError::new("--etcd-servers", format!("{}: {}", folder.display(), error_text(&error)))
    };
    let kubeconfig = folder.join(KUBECONFIG);
    match first(folder, &kubeconfig).map_err(failed)? {
        Some(held) => Ok(Position::First(held)),
        None if appears(&kubeconfig).map_err(failed)? => Ok(Position::FacadeOf(kubeconfig)),
        None => {
            let why = format!(
                "another kube-apiserver has {}, and has not become ready within {PATIENCE:?}",
                folder.display()
            );
            Err(SettingError::new("--etcd-servers", why))
        }
    }
}

/// The lock of the first, if nobody has it. What an earlier one has left leads nowhere, and is removed.
fn first(folder: &Path, kubeconfig: &Path) -> io::Result<Option<File>> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // Nobody waits for long: it is held for no more than what is done here.
    let starting = private(&folder.join(STARTING))?;
    starting.lock()?;
    let held = private(&folder.join(FIRST))?;
    match held.try_lock() {
        Ok(()) => match fs::remove_file(kubeconfig) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Some(held)),
        },
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Waits until the file is there; false when that takes too long. It appears whole.
fn appears(path: &Path) -> io::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let there = async {
        let mut period = tokio::time::interval(PERIOD);
        while !path.exists() {
            period.tick().await;
        }
    };
    Ok(runtime.block_on(async { tokio::time::timeout(PATIENCE, there).await }).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_first_and_who_comes_after_it_is_gone_is_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join(KUBECONFIG);
        fs::write(&kubeconfig, "of one who was killed").unwrap();
        let Position::First(held) = position_in(folder.path()).unwrap() else { panic!("nobody was there") };
        assert!(!kubeconfig.exists(), "it leads nowhere");
        fs::write(&kubeconfig, "").unwrap();
        assert!(
            matches!(position_in(folder.path()).unwrap(), Position::FacadeOf(found) if found == kubeconfig)
        );
        drop(held);
        assert!(matches!(position_in(folder.path()).unwrap(), Position::First(_)));
    }
}
