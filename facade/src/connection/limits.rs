//! Limits of connections.

use std::time::Duration;

/// Limits of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Time within which a request head must be complete after its first byte.
    pub header_timeout: Duration,
    /// Idle time of a connection without requests.
    ///
    /// Limit (Serving): the connection is closed, over HTTP/2 with GOAWAY.
    pub idle_timeout: Duration,
    /// Time after which a response is aborted if its client has stalled.
    pub stalled_write: Duration,
    /// Maximum bytes of the headers of a request; larger ones get 431.
    pub max_header_bytes: u32,
    /// Header fields of an HTTP/1 request.
    ///
    /// Limit (Serving): 431.
    pub max_headers: usize,
    /// `--http2-max-streams-per-connection`
    pub max_streams: u32,
    /// True if HTTP/2 is enabled (`--disable-http2-serving` disables it).
    pub http2: bool,
}

impl Default for ConnectionLimits {
    /// Upstream's limits: 32 s, 90 s, 1 MiB, 100 streams; also 60 s for stalled responses, and 100 header fields.
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(32),
            idle_timeout: Duration::from_secs(90),
            stalled_write: Duration::from_secs(60),
            max_header_bytes: 1 << 20,
            max_headers: 100,
            max_streams: 100,
            http2: true,
        }
    }
}

impl ConnectionLimits {
    /// Interval between checks of a connection, short enough to find a slow head soon after its timeout.
    #[must_use]
    pub fn check_interval(&self) -> Duration {
        self.header_timeout.min(self.idle_timeout) / 4
    }
}
