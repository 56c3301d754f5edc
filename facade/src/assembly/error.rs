//! Errors of the start of a facade.

use std::io;
use std::net::SocketAddr;

use crate::layers::{cors, hsts};

/// Error that prevents the start of a facade.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file that a setting names cannot be used.
    #[error(transparent)]
    File(#[from] portico_kit::certs::FileError),
    /// TLS settings or certificates.
    #[error(transparent)]
    Tls(#[from] portico_kit::tls::TlsError),
    /// The internal CA.
    #[error("internal CA: {0}")]
    InternalCa(portico_auth::authn::AuthorityError),
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {}", portico_gostd::os::error_text(source))]
    Bind {
        /// Address of the listener.
        address: SocketAddr,
        /// Error of the operating system.
        source: io::Error,
    },
    /// `--cors-allowed-origins`
    #[error(transparent)]
    Cors(#[from] cors::InvalidOrigin),
    /// `--strict-transport-security-directives`
    #[error(transparent)]
    Hsts(#[from] hsts::InvalidDirective),
    /// `--egress-selector-config-file`
    #[error(transparent)]
    Egress(#[from] portico_kit::egress::EgressError),
    /// A hook or a check is registered more than once: an internal error.
    #[error(transparent)]
    Hook(#[from] portico_kit::hooks::HookError),
    /// A health check is registered more than once: an internal error.
    #[error(transparent)]
    Health(#[from] portico_kit::health::HealthError),
    /// The threads that render large responses cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
    /// A built-in path cannot be registered: an internal error.
    #[error(transparent)]
    Mux(#[from] crate::mux::MuxError),
}

impl StartError {
    /// Returns true if another process listens on the address.
    #[must_use]
    pub fn is_address_in_use(&self) -> bool {
        matches!(self, Self::Bind { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
    }

    /// True if a setting is wrong, rather than the machine or the data.
    #[must_use]
    pub fn is_settings_error(&self) -> bool {
        use StartError::{Cors, Egress, File, Hsts, Tls};
        matches!(self, File(_) | Tls(_) | Cors(_) | Hsts(_) | Egress(_))
    }
}
