//! Why a facade does not start.

use std::io;
use std::net::SocketAddr;

use crate::layers::{cors, hsts};

/// Why a facade did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file that a setting names.
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
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// `--cors-allowed-origins`
    #[error(transparent)]
    Cors(#[from] cors::BadOrigin),
    /// `--strict-transport-security-directives`
    #[error(transparent)]
    Hsts(#[from] hsts::BadDirective),
    /// `--egress-selector-config-file`
    #[error(transparent)]
    Egress(#[from] portico_kit::egress::EgressError),
    /// A hook or a check that is there twice: a mistake of ours.
    #[error(transparent)]
    Hook(#[from] portico_kit::hooks::HookError),
    /// See [`StartError::Hook`].
    #[error(transparent)]
    Health(#[from] portico_kit::health::HealthError),
    /// The threads for large responses.
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
    /// A built-in path: a mistake of ours.
    #[error(transparent)]
    Mux(#[from] crate::mux::MuxError),
}

impl StartError {
    /// Returns true if another process listens on the address.
    #[must_use]
    pub fn is_address_in_use(&self) -> bool {
        matches!(self, Self::Bind { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
    }

    /// Whether a setting is wrong, rather than the machine or the data.
    #[must_use]
    pub fn is_setting(&self) -> bool {
        use StartError::{Cors, Egress, File, Hsts, Tls};
        matches!(self, File(_) | Tls(_) | Cors(_) | Hsts(_) | Egress(_))
    }
}
