//! How requests are spread over the addresses of a backend, and what becomes of those that fail.

use std::fmt;
use std::time::Duration;

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
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}
