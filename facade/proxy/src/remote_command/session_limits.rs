//! Limits of a session.

use std::time::Duration;

/// Limits of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLimits {
    /// Time for the kubelet to accept the streams.
    pub(crate) reply_timeout: Duration,
    /// Time without data from either side that ends the session.
    pub(crate) idle_timeout: Duration,
    /// Maximum size of the kubelet's error in bytes.
    pub(crate) error_bytes: usize,
}
