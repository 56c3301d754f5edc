//! How requests are spread over the addresses of a backend, and what becomes of those that fail.

use std::fmt;
use std::time::Duration;

use super::Target;

/// The default is what upstream does: every request is sent once, addresses take turns, nothing is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BackendPolicy {
    /// How often a request that changes nothing is sent again.
    pub retries: u32,
    /// How long one address may take to begin its answer to such a request.
    pub per_try_timeout: Option<Duration>,
    /// When such a request that is not answered yet is sent to another address, too.
    pub hedge_after: Option<Duration>,
    /// Connections in use at a time, if fewer than the proxy allows.
    pub max_connections: Option<u32>,
    /// The share of requests of each target; empty: all the same.
    pub weights: Vec<u32>,
    /// When an address is left out for a while.
    pub ejection: Option<Ejection>,
    /// Who gets a copy of a share of the requests.
    pub mirror: Option<Mirror>,
}

/// Who gets a copy of a share of the requests, and of which.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mirror {
    /// As it is written: a host, or `<service>.<namespace>.svc`.
    pub host: Target,
    /// Where to dial; empty where the Service leads nowhere.
    pub targets: Vec<Target>,
    /// The name that its certificate must carry.
    pub server_name: String,
    /// Of a hundred requests.
    pub percent: u32,
    /// The longest body of a request that changes something; 0: only requests that change nothing are copied.
    pub max_body_bytes: u32,
}

impl fmt::Display for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.max_body_bytes > 0 { "requests" } else { "reads" };
        write!(f, "{}% of {what} copied to {}", self.percent, self.host)?;
        if self.targets.is_empty() { f.write_str(", which has no address") } else { Ok(()) }
    }
}

/// When an address is left out, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ejection {
    /// Failures in a row.
    pub failures: u32,
    /// How long at first; doubled for each failed try to come back.
    pub time: Duration,
}

impl fmt::Display for BackendPolicy {
    /// What differs from the default; nothing where nothing does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weights: Vec<String> = self.weights.iter().map(ToString::to_string).collect();
        let parts = [
            (self.retries > 0).then(|| format!("retries {}", self.retries)),
            self.per_try_timeout.map(|time| format!("{time:?} a try")),
            self.hedge_after.map(|time| format!("hedged after {time:?}")),
            self.max_connections.map(|most| format!("at most {most} connections")),
            (!weights.is_empty()).then(|| format!("weights {}", weights.join(","))),
            self.ejection
                .map(|Ejection { failures, time }| format!("ejected for {time:?} after {failures} failures")),
            self.mirror.as_ref().map(ToString::to_string),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}
