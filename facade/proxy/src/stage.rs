//! Stages of the way to a backend.

/// Where on the way to a backend something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Service to targets, or a host name to addresses.
    Resolve,
    /// TCP, or the egress proxy.
    Dial,
    /// The TLS handshake: which name or CA.
    Tls,
    /// The exchange itself: the connection ended, or what came is not HTTP.
    Http,
}

impl Stage {
    /// As in conditions, causes and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Dial => "dial",
            Self::Tls => "tls",
            Self::Http => "http",
        }
    }
}
