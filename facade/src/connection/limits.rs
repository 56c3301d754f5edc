//! Limits of connections.

use std::time::Duration;

/// Limits of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// A request's head must be complete this long after its first byte.
    pub header_timeout: Duration,
    /// Idle time of a connection without requests.
    ///
    /// Limit (Serving): the connection is closed, over HTTP/2 with GOAWAY.
    pub idle_timeout: Duration,
    /// A response of which the client takes nothing for so long is aborted.
    pub stalled_write: Duration,
    /// Bytes of a request's headers; more is 431.
    pub max_header_bytes: u32,
    /// Header fields of an HTTP/1 request.
    ///
    /// Limit (Serving): 431.
    pub max_headers: usize,
    /// `--http2-max-streams-per-connection`
    pub max_streams: u32,
    /// `--disable-http2-serving` turns it off.
    pub http2: bool,
}

impl Default for ConnectionLimits {
    /// Upstream's: 32 s, 90 s, 1 MiB, 100 streams; and 60 s for stalled responses, 100 header fields.
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
    /// How often a connection is looked at: often enough to find a slow head soon after its time.
    #[must_use]
    pub fn look(&self) -> Duration {
        self.header_timeout.min(self.idle_timeout) / 4
    }
}
