//! Flags of controllers, with the names, defaults and bounds of kube-controller-manager.

use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, Args};
use portico_server::{
    ControllerSettings, EndpointsSettings, LeadershipTimers, MirroringSettings, QuotaSettings, SliceSettings,
    controllers,
};

use super::SettingError;
use super::values::duration;

/// Returns a parser for a number of workers, with upstream's bounds for EndpointSlice controllers.
fn workers() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=50)
}

/// Returns a parser for a number of endpoints in an EndpointSlice.
fn endpoints() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=1000)
}

/// Flags of controllers.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Controllers"))]
pub(crate) struct Controllers {
    /// Controllers of kube-controller-manager to run: names, * for the default set, -NAME to exclude one.
    ///
    /// If a controller is mentioned several times, the first mention applies. An empty value runs none of these
    /// controllers. Controllers that are part of kube-apiserver itself always run.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "*")]
    pub(crate) controllers: Vec<String>,
    /// Number of Services whose Endpoints are synced concurrently (1 to 50).
    #[arg(long, value_name = "N", value_parser = workers(), default_value_t = 5)]
    concurrent_endpoint_syncs: usize,
    /// Time to batch pod changes before Endpoints are updated.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    endpoint_updates_batch_period: Duration,
    /// Number of Services whose EndpointSlices are synced concurrently (1 to 50).
    #[arg(long, value_name = "N", value_parser = workers(), default_value_t = 5)]
    concurrent_service_endpoint_syncs: usize,
    /// Maximum number of endpoints in an EndpointSlice (1 to 1000).
    #[arg(long, value_name = "N", value_parser = endpoints(), default_value_t = 100)]
    max_endpoints_per_slice: usize,
    /// Time to batch pod changes before EndpointSlices are updated.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    endpointslice_updates_batch_period: Duration,
    /// Number of Endpoints objects mirrored concurrently (1 to 50).
    #[arg(long, value_name = "N", value_parser = workers(), default_value_t = 5)]
    mirroring_concurrent_service_endpoint_syncs: usize,
    /// Maximum number of addresses mirrored per subset of an Endpoints object (1 to 1000).
    #[arg(long, value_name = "N", value_parser = endpoints(), default_value_t = 1000)]
    mirroring_max_endpoints_per_subset: usize,
    /// Time to batch changes before mirrored EndpointSlices are updated.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    mirroring_endpointslice_updates_batch_period: Duration,
    /// Interval at which the usage of all quotas is recalculated; 0s = only when something changes.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    resource_quota_sync_period: Duration,
    /// Number of quotas recalculated concurrently (1 to 50).
    #[arg(long, value_name = "N", value_parser = workers(), default_value_t = 5)]
    concurrent_resource_quota_syncs: usize,
    /// Number of finished Jobs processed concurrently (1 to 50).
    #[arg(long, value_name = "N", value_parser = workers(), default_value_t = 5)]
    concurrent_ttl_after_finished_syncs: usize,
    /// Run controllers only on the control service that holds the leader Lease.
    ///
    /// Applies to control services that share a database (--database-url or --etcd-servers). The Lease is
    /// kube-system/kube-controller-manager.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value_t = true)]
    leader_elect: bool,
    /// Time after the last renewal at which another control service may take over the leader Lease.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "15s")]
    leader_elect_lease_duration: Duration,
    /// Time after which a leader that cannot renew its Lease stops its controllers.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    leader_elect_renew_deadline: Duration,
    /// Interval between attempts to acquire or renew the leader Lease.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2s")]
    leader_elect_retry_period: Duration,
    /// Time after the last renewal at which another server may run coordinated leader election.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "15s")]
    coordinated_leadership_lease_duration: Duration,
    /// Time after which a server that cannot renew its Lease stops running coordinated leader election.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    coordinated_leadership_renew_deadline: Duration,
    /// Interval between attempts to acquire or renew the Lease for coordinated leader election.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2s")]
    coordinated_leadership_retry_period: Duration,
}

impl Controllers {
    /// Returns the settings of the controllers.
    pub(crate) fn settings(&self) -> ControllerSettings {
        ControllerSettings {
            endpoints: EndpointsSettings {
                workers: self.concurrent_endpoint_syncs,
                batch_period: self.endpoint_updates_batch_period,
            },
            slices: SliceSettings {
                workers: self.concurrent_service_endpoint_syncs,
                max_endpoints: self.max_endpoints_per_slice,
                batch_period: self.endpointslice_updates_batch_period,
            },
            mirroring: MirroringSettings {
                workers: self.mirroring_concurrent_service_endpoint_syncs,
                max_endpoints: self.mirroring_max_endpoints_per_subset,
                batch_period: self.mirroring_endpointslice_updates_batch_period,
            },
            quotas: QuotaSettings {
                sync_period: self.resource_quota_sync_period,
                concurrent_syncs: self.concurrent_resource_quota_syncs,
            },
            ttl_workers: self.concurrent_ttl_after_finished_syncs,
        }
    }

    /// Returns the timers for electing the control service that runs the controllers, or `None` if every control service runs them.
    pub(crate) fn leader_election(&self) -> Option<LeadershipTimers> {
        self.leader_elect.then_some(LeadershipTimers {
            lease_duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
        })
    }

    /// Returns the timers for electing the server that runs coordinated leader election.
    pub(crate) fn leadership(&self) -> LeadershipTimers {
        LeadershipTimers {
            lease_duration: self.coordinated_leadership_lease_duration,
            renew_deadline: self.coordinated_leadership_renew_deadline,
            retry_period: self.coordinated_leadership_retry_period,
        }
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        check_timers("--coordinated-leadership", self.leadership())?;
        if let Some(timers) = self.leader_election() {
            check_timers("--leader-elect", timers)?;
        }
        let mut names = self.controllers.iter().filter(|name| !name.is_empty() && *name != "*");
        let bare = |name: &'_ String| name.strip_prefix('-').unwrap_or(name).to_owned();
        match names.find(|name| controllers::find(&bare(name)).is_none()) {
            Some(name) => Err(SettingError::new("--controllers", controllers::unknown_message(&bare(name)))),
            None => Ok(()),
        }
    }
}

/// Checks timers like upstream's `validateCoordinatedLeadershipFlags`.
fn check_timers(flags: &str, timers: LeadershipTimers) -> Result<(), SettingError> {
    let [lease, deadline, retry] =
        ["lease-duration", "renew-deadline", "retry-period"].map(|name| format!("{flags}-{name}"));
    let check_longer = |longer: Duration, shorter: Duration, flag: &str, shorter_flag: &str| {
        let error = || SettingError::new(flag, format!("must be greater than {shorter_flag}"));
        (longer > shorter).then_some(()).ok_or_else(error)
    };
    check_longer(timers.lease_duration, timers.renew_deadline, &lease, &deadline)?;
    check_longer(timers.renew_deadline, timers.retry_period, &deadline, &retry)?;
    check_longer(timers.retry_period, Duration::ZERO, &retry, "0s")
}
