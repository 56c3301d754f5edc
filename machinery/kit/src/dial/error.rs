//! What went wrong on the way to a backend, and at which stage.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::reason::{HandshakeFailure, handshake_failure, is_exhausted};
use super::{Refusal, Target, io_reason};
use crate::tls::{CertFault, TlsError};

/// The stage of a dial. Conditions and Explain carry its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Host name to addresses.
    Resolve,
    /// The TCP connection.
    Dial,
    /// The egress proxy.
    Egress,
    /// The TLS handshake.
    Tls,
}

impl Stage {
    /// `resolve`, `dial`, `egress` or `tls`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Dial => "dial",
            Self::Egress => "egress",
            Self::Tls => "tls",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a backend was not reached.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// No address.
    #[error("cannot resolve {host}: {reason}")]
    Resolve {
        /// The name.
        host: String,
        /// `no such host`, `timed out after 5s`, or the resolver's words.
        reason: String,
    },
    /// The address must not be dialed.
    #[error("refused to dial {target}: {refusal}")]
    Refused {
        /// What was asked for.
        target: Target,
        /// The rule.
        refusal: Refusal,
    },
    /// No TCP connection.
    #[error("cannot connect to {addr}: {}", io_reason(source))]
    Dial {
        /// Where.
        addr: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// No TCP connection in time.
    #[error("cannot connect to {target}: timed out after {}", portico_gostd::time::format_duration(*after))]
    DialTimeout {
        /// Where.
        target: Target,
        /// The limit.
        after: Duration,
    },
    /// The egress proxy could not be reached (`connect`) or did not open the tunnel (`proxy`).
    #[error("egress proxy, {stage}: {reason}")]
    Egress {
        /// `connect` or `proxy`, upstream's metric label.
        stage: &'static str,
        /// Why.
        reason: String,
    },
    /// The server's certificate was refused.
    #[error("TLS to {target}: {fault}")]
    Certificate {
        /// Whom.
        target: Target,
        /// Which certificate, and why.
        fault: Box<CertFault>,
    },
    /// The handshake failed for another reason: an alert, a version, no TLS at all.
    #[error("TLS to {target}: {reason}")]
    Tls {
        /// Whom.
        target: Target,
        /// Why.
        reason: String,
    },
    /// The handshake took too long.
    #[error("TLS to {target}: handshake timed out after {}", portico_gostd::time::format_duration(*after))]
    TlsTimeout {
        /// Whom.
        target: Target,
        /// The limit.
        after: Duration,
    },
}

impl DialError {
    /// Where it stopped.
    pub fn stage(&self) -> Stage {
        match self {
            Self::Resolve { .. } => Stage::Resolve,
            Self::Refused { .. } | Self::Dial { .. } | Self::DialTimeout { .. } => Stage::Dial,
            Self::Egress { .. } => Stage::Egress,
            Self::Certificate { .. } | Self::Tls { .. } | Self::TlsTimeout { .. } => Stage::Tls,
        }
    }

    /// Whether it was a time limit.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::DialTimeout { .. } | Self::TlsTimeout { .. })
    }

    /// Whether this process, or this machine, had nothing left to dial with: it says nothing about the backend.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Dial { source, .. } if is_exhausted(source))
    }

    /// The refused certificate, if that was it.
    pub fn certificate(&self) -> Option<&CertFault> {
        match self {
            Self::Certificate { fault, .. } => Some(fault),
            _ => None,
        }
    }

    /// Finds a dial's failure in the error of a client that used [`super::BackendConnector`].
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
