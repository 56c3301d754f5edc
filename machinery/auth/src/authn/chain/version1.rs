//! Leaves of X.509 version 1, which `openssl x509 -req` makes by default and webpki does not read.
//!
//! Such a certificate has no extensions: nothing restricts its use, and it can sign nothing. So one that a root has
//! signed itself is accepted, as upstream does; a chain with intermediates is not looked at.

use portico_kit::pki::has_signed;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use super::reason::{EXPIRED, MALFORMED, UNKNOWN_AUTHORITY};

/// Whether this is a version 1 certificate: only then the rest of this module has a say.
pub(super) fn is_version1(der: &[u8]) -> bool {
    X509Certificate::from_der(der).is_ok_and(|(_, c)| c.version() == X509Version::V1)
}

/// Whether one of the roots has signed the leaf, and it is in date.
pub(super) fn verify(
    leaf: &[u8],
    roots: &[CertificateDer<'static>],
    algorithms: &WebPkiSupportedAlgorithms,
    now: UnixTime,
) -> Result<(), &'static str> {
    let (_, leaf) = X509Certificate::from_der(leaf).map_err(|_| MALFORMED)?;
    let validity = leaf.validity();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < validity.not_before.timestamp() || now > validity.not_after.timestamp() {
        return Err(EXPIRED);
    }
    let signed = |root: &CertificateDer<'static>| {
        let Ok((_, root)) = X509Certificate::from_der(root) else { return false };
        root.is_ca()
            && root.subject().as_raw() == leaf.issuer().as_raw()
            && has_signed(&root, &leaf, algorithms)
    };
    if roots.iter().any(signed) { Ok(()) } else { Err(UNKNOWN_AUTHORITY) }
}
