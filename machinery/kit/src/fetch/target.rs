//! Where a request goes.

use crate::dial::Target;
use crate::tls::ClientTls;

/// Where to, and how.
#[derive(Clone)]
pub struct FetchTarget {
    /// What to dial.
    pub target: Target,
    /// TLS settings; none = plain HTTP.
    pub tls: Option<ClientTls>,
    /// The `Host` header; none = the target.
    pub host: Option<String>,
}
