//! What this facade saw of a backend: a hint for the control service and for Explain.

use portico_machinery::route::ServiceReference;

use crate::stage::Stage;

/// The last outcome of a dial to one backend. Recorded when it changes, not on each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Which backend.
    pub service: ServiceReference,
    /// The name its certificate must carry.
    pub server_name: String,
    /// Where was dialled, `host:port`.
    pub target: String,
    /// The stage that failed; `None` means that the target was reached.
    pub failed: Option<Stage>,
    /// What went wrong, for people; empty when reached.
    pub message: String,
    /// Unix time in milliseconds of this outcome.
    pub at_ms: u64,
    /// Dial failures in a row.
    pub failures: u32,
}
