//! Requests the group version from a backend, over the same path as real requests.

mod attempts;
mod http;

pub use attempts::{ATTEMPTS, HEDGE_DELAY, PROBE_TIMEOUT, Prober, run_attempts};
pub use http::{HttpProber, ProbeSettings};

/// Stage at which a probe failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeStage {
    /// No connection; includes name resolution.
    Dial,
    /// The TLS handshake failed.
    Tls,
    /// No response after the TLS handshake.
    Http,
    /// A response with a status other than 2xx.
    Status,
}

/// Failure of a probe. The message contains the stage and certificate names, never the body of the response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProbeFailure {
    pub stage: ProbeStage,
    /// True if the probe timed out: later probes of the backend use the permits for slow backends.
    pub timed_out: bool,
    /// Human-readable message.
    pub message: String,
}
