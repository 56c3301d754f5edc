//! Address of an issuer, and the trust for connections to it.

use portico_kit::tls::Roots;

/// Address of an issuer.
#[derive(Clone, Debug)]
pub(super) struct IssuerAddress {
    /// URL that identifies the issuer, which is also the base of its metadata URL.
    pub(super) url: String,
    /// URL of the metadata, if it differs from the default.
    pub(super) discovery_url: Option<String>,
    /// CAs that are trusted for connections to the issuer.
    pub(super) roots: Roots,
    /// Egress selection for connections to the issuer; `None` to dial directly.
    pub(super) egress: Option<&'static str>,
}
