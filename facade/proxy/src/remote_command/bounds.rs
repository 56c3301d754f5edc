//! The limits of a session.

use std::time::Duration;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// How long the kubelet may take to accept the streams.
    pub(crate) replies: Duration,
    /// How long neither side may send anything.
    pub(crate) idle: Duration,
    /// Bytes of the kubelet's error.
    pub(crate) error_bytes: usize,
}
