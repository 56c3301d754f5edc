//! Destination of a request.

use crate::dial::Target;
use crate::tls::ClientTls;

/// Address, TLS settings and `Host` of a destination.
#[derive(Clone)]
pub struct FetchTarget {
    /// Host and port to dial.
    pub target: Target,
    /// TLS settings, or `None` for plain HTTP.
    pub tls: Option<ClientTls>,
    /// `Host` header, or `None` for the target.
    pub host: Option<String>,
}
