//! Asking a backend for its group version, the way a request would reach it.

mod attempts;
mod http;

pub use attempts::{ATTEMPTS, GUARD, HEDGE, Prober, attempt};
pub use http::{HttpProber, ProbeSettings};

/// Where a probe stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeStage {
    /// No connection, the name's resolution included.
    Dial,
    /// No TLS.
    Tls,
    /// TLS, but no answer.
    Http,
    /// An answer, but no 2xx.
    Status,
}

/// Why a probe failed. The text names the stage and certificate names, never what the backend sent in a body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProbeFailure {
    /// Where it stopped.
    pub stage: ProbeStage,
    /// Whether it was a time limit: such a backend is probed in the slow lane from now on.
    pub timed_out: bool,
    /// For people.
    pub message: String,
}
