//! Reports that the folder of manifests is not applied yet, and that the server is therefore not ready. If the program of
//! `portico run -- CMD` waits for the server, an error in the folder ends the process.

use portico_server::{Server, UnappliedManifests};
use tokio::sync::watch;

use super::{Failure, service_manager};
use crate::settings::Settings;

/// Reporter of a folder of manifests that is not applied yet.
pub(super) struct UnappliedReporter {
    folder: Option<watch::Receiver<Option<UnappliedManifests>>>,
    has_command: bool,
}

impl UnappliedReporter {
    /// Creates a reporter for the folder of `server`.
    pub(super) fn new(server: &Server, settings: &Settings) -> Self {
        Self { folder: server.unapplied_manifests(), has_command: !settings.command.is_empty() }
    }

    /// Creates a reporter for a process without a folder of manifests.
    pub(super) fn without_folder() -> Self {
        Self { folder: None, has_command: false }
    }

    /// Reports problems to the log and the service manager. Returns only if a program waits for the server and the folder cannot
    /// be applied.
    pub(super) async fn report(self) -> Failure {
        let Some(mut folder) = self.folder else { return std::future::pending().await };
        let mut reported: Option<String> = None;
        // The folder may have changed before this call.
        folder.mark_changed();
        while folder.changed().await.is_ok() {
            let Some(unapplied) = folder.borrow_and_update().clone() else {
                if reported.take().is_some() {
                    service_manager::status("");
                }
                continue;
            };
            let problem = unapplied.problem;
            if unapplied.is_final && self.has_command {
                return Failure::Unapplied(problem);
            }
            if reported.as_ref() == Some(&problem) {
                continue;
            }
            if reported.is_none() {
                tracing::warn!(
                    error = problem,
                    "manifests cannot be applied, server is not ready; see /readyz/manifests"
                );
            }
            service_manager::status(&format!("not ready: {problem}"));
            reported = Some(problem);
        }
        std::future::pending().await
    }
}
