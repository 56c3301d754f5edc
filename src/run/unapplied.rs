//! What keeps a server from getting ready: a folder of manifests that is not applied. It is said once; a command that waits for
//! the server ends with it.

use portico_server::{Server, UnappliedManifests};
use tokio::sync::watch;

use super::{Failure, service_manager};
use crate::settings::Settings;

/// Who hears of it.
pub(super) struct Unapplied {
    folder: Option<watch::Receiver<Option<UnappliedManifests>>>,
    has_command: bool,
}

impl Unapplied {
    /// Of the server's folder.
    pub(super) fn of(server: &Server, settings: &Settings) -> Self {
        Self { folder: server.unapplied_manifests(), has_command: !settings.command.is_empty() }
    }

    /// Where there is no folder.
    pub(super) fn nothing() -> Self {
        Self { folder: None, has_command: false }
    }

    /// Says what is waited for; comes to an end only where a command waits in vain.
    pub(super) async fn told(self) -> Failure {
        let Some(mut folder) = self.folder else { return std::future::pending().await };
        let mut said: Option<String> = None;
        // What was found before anybody asked counts, too.
        folder.mark_changed();
        while folder.changed().await.is_ok() {
            let Some(unapplied) = folder.borrow_and_update().clone() else {
                if said.take().is_some() {
                    service_manager::status("");
                }
                continue;
            };
            let problem = unapplied.problem;
            if unapplied.is_final && self.has_command {
                return Failure::Unapplied(problem);
            }
            if said.as_ref() == Some(&problem) {
                continue;
            }
            if said.is_none() {
                tracing::warn!(
                    problem,
                    "not ready: the folder of manifests is not applied; see /readyz/manifests"
                );
            }
            service_manager::status(&format!("not ready: {problem}"));
            said = Some(problem);
        }
        std::future::pending().await
    }
}
