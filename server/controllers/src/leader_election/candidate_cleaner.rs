//! Deletes candidates that have not renewed for half an hour (upstream's `LeaseCandidateGCController`).

use std::time::Duration;

use jiff::Timestamp;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_machinery::{Reason, Status};
use portico_registry::{Context, DeleteOptions, ListOptions, Preconditions, Registry};
use tokio::sync::watch;

use super::candidate::Candidate;
use super::names::{USER, candidates};
use crate::periodic::at_intervals;
use crate::write_result::ignore_reasons;

/// Upstream's `LeaseCandidateGCPeriod`.
const PERIOD: Duration = Duration::from_secs(30 * 60);

/// Sweeps at intervals while this server is the leader, until `tasks` is cancelled.
pub(super) async fn run(registry: Registry, mut leads: watch::Receiver<bool>, tasks: TaskSet) {
    let sweeps = async {
        while leads.wait_for(|leads| *leads).await.is_ok() {
            let round = at_intervals(PERIOD, BackoffPolicy::CONTROLLER, || async {
                let done = sweep(&registry, Timestamp::now()).await;
                let logged = done.inspect_err(|status| {
                    tracing::warn!(
                        error = %status,
                        "cannot delete expired lease candidates, retrying"
                    )
                });
                logged.is_ok()
            });
            tokio::select! {
                () = round => {}
                _ = leads.wait_for(|leads| !*leads) => {}
            }
        }
    };
    tasks.token().run_until_cancelled(sweeps).await;
}

/// Deletes expired candidates, except those that renew in the meantime.
async fn sweep(registry: &Registry, now: Timestamp) -> Result<(), Box<Status>> {
    let all = registry.list(&candidates(), "", &ListOptions::default()).await?.items;
    for old in all.iter().filter(|candidate| Candidate::parse_valid(candidate.object(), now).is_none()) {
        let preconditions = Preconditions {
            uid: Some(old.uid().to_owned()),
            resource_version: Some(old.revision().to_string()),
        };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        let context = Context::system(USER);
        let deleted = registry.delete(&context, &candidates(), old.namespace(), old.name(), &options).await;
        ignore_reasons(deleted, &[Reason::NotFound, Reason::Conflict])?;
    }
    Ok(())
}
