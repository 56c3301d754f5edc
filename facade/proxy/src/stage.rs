//! Stages of a connection to a backend.

/// Stage at which an exchange with a backend failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Resolution of a Service to targets, or of a host name to addresses.
    Resolve,
    /// Connection by TCP, or by the egress proxy.
    Dial,
    /// TLS handshake, with the verification of name and CA.
    Tls,
    /// The HTTP exchange: the connection ended, or the response is not HTTP.
    Http,
}

impl Stage {
    /// Returns the name used in conditions, causes and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Dial => "dial",
            Self::Tls => "tls",
            Self::Http => "http",
        }
    }
}
