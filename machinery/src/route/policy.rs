//! Load balancing and failure handling of a backend.

use std::fmt;
use std::time::Duration;

use super::Target;

/// Policy of a backend. The default is upstream's behavior: no retries, round robin, no ejection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BackendPolicy {
    /// Number of retries of a read-only request.
    pub retries: u32,
    /// Maximum time until an address starts its response to a read-only request.
    pub per_try_timeout: Option<Duration>,
    /// Time after which an unanswered read-only request is also sent to another address.
    pub hedge_after: Option<Duration>,
    /// Maximum number of connections in use, if lower than the limit of the proxy.
    pub max_connections: Option<u32>,
    /// Relative share of requests of each target; empty for equal shares.
    pub weights: Vec<u32>,
    /// Ejection of failing addresses, if enabled.
    pub ejection: Option<Ejection>,
    /// Mirror that receives copies of requests, if any.
    pub mirror: Option<Mirror>,
}

/// Mirror, and the requests that are copied to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mirror {
    /// Configured host: a host name, or `<service>.<namespace>.svc`.
    pub host: Target,
    /// Addresses to dial; empty if the Service does not resolve.
    pub targets: Vec<Target>,
    /// Name that the mirror's certificate must have.
    pub server_name: String,
    /// Percentage of requests that are copied.
    pub percent: u32,
    /// Maximum body size of a modifying request that is copied; with 0, only read-only requests are copied.
    pub max_body_bytes: u32,
}

impl fmt::Display for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = if self.max_body_bytes > 0 { "requests" } else { "reads" };
        write!(f, "{}% of {requests} copied to {}", self.percent, self.host)?;
        if self.targets.is_empty() { f.write_str(", which has no address") } else { Ok(()) }
    }
}

/// Conditions and duration of an ejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ejection {
    /// Number of consecutive failures.
    pub failures: u32,
    /// Initial duration; doubled each time the address fails again.
    pub time: Duration,
}

impl fmt::Display for BackendPolicy {
    /// Formats the differences from the default policy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weights: Vec<String> = self.weights.iter().map(ToString::to_string).collect();
        let parts = [
            (self.retries > 0).then(|| format!("retries {}", self.retries)),
            self.per_try_timeout.map(|time| format!("{time:?} per try")),
            self.hedge_after.map(|time| format!("hedged after {time:?}")),
            self.max_connections.map(|max| format!("at most {max} connections")),
            (!weights.is_empty()).then(|| format!("weights {}", weights.join(","))),
            self.ejection
                .map(|Ejection { failures, time }| format!("ejected for {time:?} after {failures} failures")),
            self.mirror.as_ref().map(ToString::to_string),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}
