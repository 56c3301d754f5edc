//! The `Available` condition of every APIService, maintained by two controllers as in upstream since 1.32.
//!
//! `decide` holds the decision table, `probe` the requests to backends, `cache` the results, `remote` and `local` the
//! reconcile loops, `status` the writer. The condition is true if a control service of the store or any connected facade
//! reaches the backend.

mod cache;
mod controller;
mod decide;
mod gates;
mod local;
mod metrics;
mod peers;
mod probe;
mod remote;
mod status;
#[cfg(test)]
mod tests;

pub use cache::{HINT_AGE, PERIOD};
pub use controller::{Availability, Observation};
pub use decide::{ConditionStatus, Decision, ProbePlan, Verdict, decide_local, decide_probed, decide_remote};
pub use peers::{OBJECTION_WAIT, PeerReport};
pub use probe::{
    ATTEMPTS, GUARD, HEDGE, HttpProber, ProbeFailure, ProbeSettings, ProbeStage, Prober, attempt,
};
pub use status::{RegistrySink, Sink};
