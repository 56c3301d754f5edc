//! Errors of dialing a backend, with the stage at which they occurred.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::reason::{HandshakeFailure, handshake_failure, is_exhausted};
use super::{Refusal, Target, io_reason};
use crate::tls::{CertFault, TlsError};

/// Stage of a dial. Conditions and Explain show its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DialStage {
    /// Resolution of the host name to addresses.
    Resolve,
    /// TCP connection.
    Dial,
    /// Tunnel through the egress proxy.
    Egress,
    /// TLS handshake.
    Tls,
}

impl DialStage {
    /// Returns `resolve`, `dial`, `egress` or `tls`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Dial => "dial",
            Self::Egress => "egress",
            Self::Tls => "tls",
        }
    }
}

impl fmt::Display for DialStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error of dialing a backend.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The name has no address.
    #[error("cannot resolve {host}: {reason}")]
    Resolve {
        /// Host name.
        host: String,
        /// `no such host`, `timed out after 5s`, or the message of the resolver.
        reason: String,
    },
    /// The address rules forbid this target.
    #[error("refused to dial {target}: {refusal}")]
    Refused {
        /// Requested target.
        target: Target,
        /// Rule that forbids it.
        refusal: Refusal,
    },
    /// The TCP connection failed.
    #[error("cannot connect to {addr}: {}", io_reason(source))]
    Dial {
        /// Dialed address.
        addr: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// The TCP connection timed out.
    #[error("cannot connect to {target}: timed out after {}", portico_gostd::time::format_duration(*after))]
    DialTimeout {
        /// Dialed target.
        target: Target,
        /// Timeout.
        after: Duration,
    },
    /// The egress proxy could not be reached (`connect`) or did not open the tunnel (`proxy`).
    #[error("egress proxy, {stage}: {reason}")]
    Egress {
        /// `connect` or `proxy`, the label of upstream's metric.
        stage: &'static str,
        /// Reason of the failure.
        reason: String,
    },
    /// The certificate of the server was rejected.
    #[error("TLS to {target}: {fault}")]
    Certificate {
        /// Dialed target.
        target: Target,
        /// Rejected certificate and the reason.
        fault: Box<CertFault>,
    },
    /// The handshake failed for another reason, such as an alert, the TLS version, or a server without TLS.
    #[error("TLS to {target}: {reason}")]
    Tls {
        /// Dialed target.
        target: Target,
        /// Reason of the failure.
        reason: String,
    },
    /// The handshake timed out.
    #[error("TLS to {target}: handshake timed out after {}", portico_gostd::time::format_duration(*after))]
    TlsTimeout {
        /// Dialed target.
        target: Target,
        /// Timeout.
        after: Duration,
    },
}

impl DialError {
    /// Returns the stage at which the dial failed.
    pub fn stage(&self) -> DialStage {
        match self {
            Self::Resolve { .. } => DialStage::Resolve,
            Self::Refused { .. } | Self::Dial { .. } | Self::DialTimeout { .. } => DialStage::Dial,
            Self::Egress { .. } => DialStage::Egress,
            Self::Certificate { .. } | Self::Tls { .. } | Self::TlsTimeout { .. } => DialStage::Tls,
        }
    }

    /// True if a stage timed out.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::DialTimeout { .. } | Self::TlsTimeout { .. })
    }

    /// True if this process or machine ran out of resources for connections. Such an error does not depend on the backend.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Dial { source, .. } if is_exhausted(source))
    }

    /// Returns the rejected certificate, if that is the error.
    pub fn certificate(&self) -> Option<&CertFault> {
        match self {
            Self::Certificate { fault, .. } => Some(fault),
            _ => None,
        }
    }

    /// Finds a dial error among the causes of an error of a client that uses [`super::BackendConnector`].
    pub fn find<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            cause = error.source();
        }
        None
    }

    pub(super) fn from_handshake(target: &Target, error: &io::Error) -> Self {
        let target = target.clone();
        match handshake_failure(error) {
            HandshakeFailure::Certificate(fault) => {
                Self::Certificate { target, fault: Box::new(fault.clone()) }
            }
            HandshakeFailure::Other(reason) => Self::Tls { target, reason: reason.to_owned() },
        }
    }

    pub(super) fn from_tls(target: &Target, error: &TlsError) -> Self {
        Self::Tls { target: target.clone(), reason: error.to_string() }
    }
}
