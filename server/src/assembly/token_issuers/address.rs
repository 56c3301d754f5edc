//! Where an issuer is, and whom to trust there.

use portico_kit::tls::Roots;

/// Where an issuer is found.
#[derive(Clone, Debug)]
pub(super) struct IssuerAddress {
    /// Its name, below which its metadata is.
    pub(super) url: String,
    /// Where its metadata is instead.
    pub(super) discovery_url: Option<String>,
    /// Whom to trust.
    pub(super) roots: Roots,
    /// Through which of the egress selector's proxies it is reached.
    pub(super) egress: Option<&'static str>,
}
