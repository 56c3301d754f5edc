//! The `Available` condition of every APIService, maintained by two controllers as in upstream since 1.32.
//!
//! `decide` holds the decision table, `probe` the requests to backends, `cache` the results, `remote` and `local` the
//! reconcile loops, `status` the writer. The condition is true if a control service of the store or any connected facade
//! reaches the backend.

mod cache;
mod controller;
mod decision;
mod local;
mod metrics;
mod peers;
mod probe;
mod probe_limits;
mod remote;
mod status;
#[cfg(test)]
mod tests;

pub use cache::{FACADE_REPORT_TTL, PROBE_INTERVAL};
pub use controller::{Availability, Observation};
pub use decision::{
    AvailabilityVerdict, ConditionStatus, Decision, ProbePlan, decide_local, decide_probed, decide_remote,
};
pub use peers::{OBJECTION_WAIT, PeerReport};
pub use probe::{
    ATTEMPTS, HEDGE_DELAY, HttpProber, PROBE_TIMEOUT, ProbeFailure, ProbeSettings, ProbeStage, Prober,
    run_attempts,
};
pub use status::{RegistrySink, StatusSink};
