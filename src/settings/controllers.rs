//! Controllers of kube-controller-manager: which of them run, and how; names, defaults and bounds are its own.

use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, Args};
use portico_server::{
    ControllerSettings, EndpointsSettings, LeadershipTimers, MirroringSettings, QuotaSettings, SliceSettings,
    controllers,
};

use super::SettingError;
use super::values::duration;

/// A number of workers. Upstream bounds those that write slices.
fn workers() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=50)
}

/// A number of endpoints in a slice.
fn endpoints() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=1000)
}

/// Settings of controllers.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Controllers"))]
pub(crate) struct Controllers {
    /// Controllers of kube-controller-manager to run: its names, * for all that are on by default, -NAME to leave one out,
    /// empty for none. What kube-apiserver itself runs is not governed by it.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "*")]
    pub(crate) controllers: Vec<String>,
    /// Services whose Endpoints are brought up to date at a time.
    #[arg(long, value_name = "N", value_parser = workers(), default_value_t = 5)]
    concurrent_endpoint_syncs: usize,
    /// How long a change of a pod waits for others before Endpoints are brought up to date.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    endpoint_updates_batch_period: Duration,
    /// Services whose EndpointSlices are brought up to date at a time.
    #[arg(long, value_name = "N", value_parser = workers(), default_value_t = 5)]
    concurrent_service_endpoint_syncs: usize,
    /// Endpoints in an EndpointSlice, at most.
    #[arg(long, value_name = "N", value_parser = endpoints(), default_value_t = 100)]
    max_endpoints_per_slice: usize,
    /// How long a change of a pod waits for others before EndpointSlices are brought up to date.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    endpointslice_updates_batch_period: Duration,
    /// Endpoints that are mirrored at a time.
    #[arg(long, value_name = "N", value_parser = workers(), default_value_t = 5)]
    mirroring_concurrent_service_endpoint_syncs: usize,
    /// Addresses of a subset of Endpoints that are mirrored, at most.
    #[arg(long, value_name = "N", value_parser = endpoints(), default_value_t = 1000)]
    mirroring_max_endpoints_per_subset: usize,
    /// How long a change of a mirroring EndpointSlice waits for others.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    mirroring_endpointslice_updates_batch_period: Duration,
    /// How often resourcequota-controller counts all quotas though nothing has changed; 0s = never.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    resource_quota_sync_period: Duration,
    /// Quotas that resourcequota-controller counts at a time.
    #[arg(long, value_name = "N", value_parser = workers(), default_value_t = 5)]
    concurrent_resource_quota_syncs: usize,
    /// Finished Jobs that are looked at at a time.
    #[arg(long, value_name = "N", value_parser = workers(), default_value_t = 5)]
    concurrent_ttl_after_finished_syncs: usize,
    /// With --database-url: of the control services of the database one runs these controllers, the one that holds the Lease
    /// kube-system/kube-controller-manager.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value_t = true)]
    leader_elect: bool,
    /// How long others wait after the last renewal of the one that runs the controllers.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "15s")]
    leader_elect_lease_duration: Duration,
    /// How long the one that runs the controllers goes on without being able to renew.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    leader_elect_renew_deadline: Duration,
    /// How long is waited between tries to acquire or renew that Lease.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2s")]
    leader_elect_retry_period: Duration,
    /// How long other servers wait after the last renewal of the server that holds coordinated elections.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "15s")]
    coordinated_leadership_lease_duration: Duration,
    /// How long the server that holds coordinated elections goes on without being able to renew.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    coordinated_leadership_renew_deadline: Duration,
    /// How long servers wait between tries to acquire or renew the right to hold coordinated elections.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2s")]
    coordinated_leadership_retry_period: Duration,
}

impl Controllers {
    /// How the controllers work.
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

    /// How control services agree on which of them runs the controllers, unless each does.
    pub(crate) fn leader_election(&self) -> Option<LeadershipTimers> {
        self.leader_elect.then_some(LeadershipTimers {
            lease_duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
        })
    }

    /// How servers agree on which of them holds elections.
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
        let mut named = self.controllers.iter().filter(|name| !name.is_empty() && *name != "*");
        let bare = |name: &'_ String| name.strip_prefix('-').unwrap_or(name).to_owned();
        match named.find(|name| controllers::known(&bare(name)).is_none()) {
            Some(name) => {
                let text = format!("{:?} is not in the list of known controllers", bare(name));
                Err(SettingError::new("--controllers", text))
            }
            None => Ok(()),
        }
    }
}

/// Upstream's `validateCoordinatedLeadershipFlags`.
fn check_timers(flags: &str, timers: LeadershipTimers) -> Result<(), SettingError> {
    let [lease, deadline, retry] =
        ["lease-duration", "renew-deadline", "retry-period"].map(|name| format!("{flags}-{name}"));
    let longer = |longer: Duration, shorter: Duration, flag: &str, than: &str| {
        let wrong = || SettingError::new(flag, format!("must be greater than {than}"));
        (longer > shorter).then_some(()).ok_or_else(wrong)
    };
    longer(timers.lease_duration, timers.renew_deadline, &lease, &deadline)?;
    longer(timers.renew_deadline, timers.retry_period, &deadline, &retry)?;
    longer(timers.retry_period, Duration::ZERO, &retry, "0s")
}
