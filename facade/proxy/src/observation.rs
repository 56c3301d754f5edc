//! State of a backend as seen by this facade: a hint for the control service and for `portico explain`.

use portico_machinery::route::ServiceReference;
use tokio::time::Instant;

use crate::stage::Stage;

/// Last outcome of a dial to one backend. Recorded when it changes, not for each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Service of the backend.
    pub service: ServiceReference,
    /// Name that the certificate must be valid for.
    pub server_name: String,
    /// Dialed address, `host:port`.
    pub target: String,
    /// The stage that failed; `None` if the target was reached.
    pub failed: Option<Stage>,
    /// Error message; empty if the target was reached.
    pub message: String,
    /// Time of this outcome, in milliseconds since 1970.
    pub at_ms: u64,
    /// Consecutive dial failures.
    pub failures: u32,
    /// Time of the last request in flight, with the precision of the transport sweep.
    pub last_used: Instant,
}

/// State of one address of a backend as seen by this facade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetState {
    /// `host:port`.
    pub target: String,
    /// True if the circuit is open: after consecutive dial failures, only probes are allowed.
    pub is_open: bool,
    /// Consecutive dial failures.
    pub failures: u32,
    /// The stage at which the last dial failed; `None` if the target was reached or never dialed.
    pub failed: Option<Stage>,
    /// Error message; empty if the target was reached.
    pub message: String,
    /// Start of this state, in milliseconds since 1970; `None` if the target was never dialed.
    pub since_ms: Option<u64>,
    /// Share of requests, if a policy sets one.
    pub weight: Option<u32>,
    /// Ejection state; `None` without an ejection policy.
    pub ejection: Option<EjectionState>,
}

/// Ejection of an address after failed requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EjectionState {
    /// True if the address is ejected.
    pub is_ejected: bool,
    /// Consecutive failed requests.
    pub failures: u32,
    /// Time of the first of these failures, or of the return, in milliseconds since 1970; `None` if no request ever failed.
    pub since_ms: Option<u64>,
    /// Time of the next probe request, in milliseconds since 1970; `None` while the address is not ejected.
    pub probe_at_ms: Option<u64>,
}
