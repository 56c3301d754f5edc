//! Roles of servers that share a folder for state, as several kube-apiservers share an etcd: the first server stores the state,
//! the other servers are facades of the first.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portico_gostd::os::error_text;
use portico_kit::platform::{DirBuilderExt, OpenOptionsExt};

use crate::settings::SettingError;

/// Lock file of starting servers, so that only one server at a time checks whether it is the first.
const STARTING: &str = "starting.lock";
/// Lock file of the first server, which is locked until the process ends, even if it is killed.
const FIRST: &str = "first.lock";
/// Kubeconfig that the first server writes once facades can connect to it.
const KUBECONFIG: &str = "facade.kubeconfig";

/// Timeout for the first server to become ready, generous for busy machines.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval at which a facade checks whether the kubeconfig exists.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Role of a server among the servers that share a folder.
#[derive(Debug)]
pub(super) enum ElectionRole {
    /// First server, as long as this lock file is open.
    First(File),
    /// Facade of the first server, which has written the kubeconfig at this path.
    FacadeOf(PathBuf),
}

/// Makes this server the first in `folder`, which is created if missing, or waits until the first server is ready.
///
/// # Errors
/// Returns an error if the folder cannot be used or the first server is not ready in time.
pub(super) fn elect(folder: &Path) -> Result<ElectionRole, SettingError> {
    let failed = |error: io::Error| {
        SettingError::new("--etcd-servers", format!("{}: {}", folder.display(), error_text(&error)))
    };
    let kubeconfig = folder.join(KUBECONFIG);
    match lock_as_first(folder, &kubeconfig).map_err(failed)? {
        Some(lock) => Ok(ElectionRole::First(lock)),
        None if wait_until_exists(&kubeconfig).map_err(failed)? => Ok(ElectionRole::FacadeOf(kubeconfig)),
        None => {
            let message = format!(
                "another kube-apiserver uses {} and did not become ready within {} s",
                folder.display(),
                READY_TIMEOUT.as_secs()
            );
            Err(SettingError::new("--etcd-servers", message))
        }
    }
}

/// Takes the lock of the first server if it is free, and then removes the kubeconfig of an earlier server.
fn lock_as_first(folder: &Path, kubeconfig: &Path) -> io::Result<Option<File>> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // This lock is held only during this function.
    let starting = open_private(&folder.join(STARTING))?;
    starting.lock()?;
    let lock = open_private(&folder.join(FIRST))?;
    match lock.try_lock() {
        Ok(()) => match fs::remove_file(kubeconfig) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Some(lock)),
        },
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Waits until the file, which is written atomically, exists. Returns false on timeout.
fn wait_until_exists(path: &Path) -> io::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let wait_for_file = async {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        while !path.exists() {
            ticks.tick().await;
        }
    };
    Ok(runtime.block_on(async { tokio::time::timeout(READY_TIMEOUT, wait_for_file).await }).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_is_first_and_another_one_after_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join(KUBECONFIG);
        fs::write(&kubeconfig, "of a killed server").unwrap();
        let ElectionRole::First(lock) = elect(folder.path()).unwrap() else { panic!("no other server runs") };
        assert!(!kubeconfig.exists(), "the kubeconfig of the killed server remains");
        fs::write(&kubeconfig, "").unwrap();
        assert!(
            matches!(elect(folder.path()).unwrap(), ElectionRole::FacadeOf(found) if found == kubeconfig)
        );
        drop(lock);
        assert!(matches!(elect(folder.path()).unwrap(), ElectionRole::First(_)));
    }
}
