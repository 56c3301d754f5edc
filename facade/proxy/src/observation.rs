//! What this facade saw of a backend: a hint for the control service and for Explain.

use portico_machinery::route::ServiceReference;
use tokio::time::Instant;

use crate::stage::Stage;

/// The last outcome of a dial to one backend. Recorded when it changes, not on each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Which backend.
    pub service: ServiceReference,
    /// The name its certificate must carry.
    pub server_name: String,
    /// Where was dialed, `host:port`.
    pub target: String,
    /// The stage that failed; `None` means that the target was reached.
    pub failed: Option<Stage>,
    /// What went wrong, for people; empty when reached.
    pub message: String,
    /// Unix time in milliseconds of this outcome.
    pub at_ms: u64,
    /// Dial failures in a row.
    pub failures: u32,
    /// When a request was under way there last, as exactly as transports are swept.
    pub last_used: Instant,
}

/// What this facade knows of one address of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetState {
    /// `host:port`.
    pub target: String,
    /// Whether so many dials have failed in a row that only probes are allowed.
    pub is_open: bool,
    /// Dial failures in a row.
    pub failures: u32,
    /// The stage at which the last dial failed; `None` means that the target was reached, or never dialed.
    pub failed: Option<Stage>,
    /// What went wrong, for people; empty when reached.
    pub message: String,
    /// Since when it is so, in milliseconds since 1970; `None` means that it was never dialed.
    pub since_ms: Option<u64>,
    /// Its share of requests, where a policy gives it one.
    pub weight: Option<u32>,
    /// Whether it is left out for its answers; nothing where no policy asks for that.
    pub ejection: Option<EjectionState>,
}

/// Whether an address is left out because requests to it went badly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EjectionState {
    /// Whether it is.
    pub is_out: bool,
    /// Requests in a row that went badly.
    pub failures: u32,
    /// When the first of them ended, or when it came back, in milliseconds since 1970; `None` means that none ever went badly.
    pub since_ms: Option<u64>,
    /// When one request may try it again, in milliseconds since 1970; `None` while it is in.
    pub tried_at_ms: Option<u64>,
}
