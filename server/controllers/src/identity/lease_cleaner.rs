//! Deletes identity Leases of API servers that no longer run (hook
//! `start-kube-apiserver-identity-lease-garbage-collector`).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_machinery::selector::LabelSelector;
use portico_machinery::{Object, Reason, Status, time};
use portico_registry::{Context, DeleteOptions, ListOptions, Preconditions, Registry};

use super::{COMPONENT, IDENTITY_LABEL, NAMESPACE, leases};
use crate::periodic::at_intervals;
use crate::write_result::ignore_reasons;

/// Upstream's period.
const PERIOD: Duration = Duration::from_secs(3600);

/// Returns true if the Lease has expired or has no known end. Pure.
#[must_use]
pub fn is_expired(lease: &Object, now: Timestamp) -> bool {
    let renewed = lease.at(&["spec", "renewTime"]).opt_str().and_then(time::parse);
    let duration = lease.at(&["spec", "leaseDurationSeconds"]).i64();
    let end = renewed.zip(duration).and_then(|(at, s)| at.checked_add(SignedDuration::from_secs(s)).ok());
    end.is_none_or(|end| end < now)
}

/// Sweeps at intervals until `tasks` is cancelled.
pub async fn run(registry: Registry, tasks: TaskSet) {
    let sweeps = at_intervals(PERIOD, BackoffPolicy::CONTROLLER, || async {
        let done = sweep(&registry, Timestamp::now()).await;
        done.inspect_err(
            |status| tracing::warn!(error = %status, "cannot delete expired identity leases, retrying"),
        )
        .is_ok()
    });
    tasks.token().run_until_cancelled(sweeps).await;
}

/// Deletes expired Leases, except those that are renewed in the meantime.
///
/// # Errors
/// Returns the first failure.
pub async fn sweep(registry: &Registry, now: Timestamp) -> Result<(), Box<Status>> {
    let labels = LabelSelector::parse(&format!("{IDENTITY_LABEL}={COMPONENT}")).map_err(Status::internal)?;
    let all = registry.list(&leases(), NAMESPACE, &ListOptions { labels, ..ListOptions::default() }).await?;
    for lease in all.items.iter().filter(|lease| is_expired(lease.object(), now)) {
        let preconditions = Preconditions {
            uid: Some(lease.uid().to_owned()),
            resource_version: Some(lease.revision().to_string()),
        };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        let deleted = registry
            .delete(&Context::system("system:apiserver"), &leases(), NAMESPACE, lease.name(), &options)
            .await;
        ignore_reasons(deleted, &[Reason::NotFound, Reason::Conflict])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Identity, renewed_lease};
    use super::*;

    #[test]
    fn a_lease_lasts_for_its_duration_and_one_without_a_duration_is_expired() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let mut lease = renewed_lease(None, &Identity::new("host", "1"), None, at(1_000));
        assert!(!is_expired(&lease, at(4_600)));
        assert!(is_expired(&lease, at(4_601)));
        lease.remove(&["spec", "leaseDurationSeconds"]);
        assert!(is_expired(&lease, at(1_000)));
        let mut lease = renewed_lease(None, &Identity::new("host", "1"), None, at(1_000));
        lease.remove(&["spec", "renewTime"]);
        assert!(is_expired(&lease, at(1_000)));
    }
}
