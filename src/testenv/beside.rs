//! Several servers of one folder, as several kube-apiservers of one etcd: the first keeps the state, the others are facades of it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portico_gostd::os::error_text;
use portico_kit::platform::{DirBuilderExt, OpenOptionsExt};

use crate::settings::SettingError;

/// Locked by whoever finds out which one it is, so that they do so one after the other.
const TURN: &str = "turn.lock";
/// Locked by the first as long as it lives, however it ends.
const FIRST: &str = "first.lock";
/// What the first writes once others can follow it.
const WAY: &str = "facade.kubeconfig";

/// How long the first may take until others can follow it: far beyond what a start takes, for busy machines.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked for.
const PERIOD: Duration = Duration::from_millis(20);

/// Which of several servers this is.
#[derive(Debug)]
pub(super) enum Seat {
    /// The first: it is as long as this file is open.
    First(File),
    /// Another one has the state, and this kubeconfig leads to it.
    Beside(PathBuf),
}

/// Takes the seat of the first in this folder, which is made, or waits for the one who has it.
///
/// # Errors
/// The folder cannot be used, or the first one cannot be followed in time.
pub(super) fn take(folder: &Path) -> Result<Seat, SettingError> {
    let failed = |error: io::Error| {
        SettingError::new("--etcd-servers", format!("{}: {}", folder.display(), error_text(&error)))
    };
    let way = folder.join(WAY);
    match first(folder, &way).map_err(failed)? {
        Some(held) => Ok(Seat::First(held)),
        None if appears(&way).map_err(failed)? => Ok(Seat::Beside(way)),
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
fn first(folder: &Path, way: &Path) -> io::Result<Option<File>> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // Nobody waits for long: what is done in a turn is what is done here.
    let turn = private(&folder.join(TURN))?;
    turn.lock()?;
    let held = private(&folder.join(FIRST))?;
    match held.try_lock() {
        Ok(()) => match fs::remove_file(way) {
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
        let way = folder.path().join(WAY);
        fs::write(&way, "of one who was killed").unwrap();
        let Seat::First(held) = take(folder.path()).unwrap() else { panic!("nobody was there") };
        assert!(!way.exists(), "it leads nowhere");
        fs::write(&way, "").unwrap();
        assert!(matches!(take(folder.path()).unwrap(), Seat::Beside(found) if found == way));
        drop(held);
        assert!(matches!(take(folder.path()).unwrap(), Seat::First(_)));
    }
}
