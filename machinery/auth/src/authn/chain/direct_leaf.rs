//! Leaves that webpki rejects and Go's `crypto/x509` accepts: certificates of X.509 version 1, which `openssl x509 -req` makes by
//! default, certificates that may sign others, and certificates for any purpose.
//!
//! Such a leaf is accepted if a root has signed it directly. Chains with intermediates are not supported.

use portico_kit::pki::has_signed;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use super::reason::{EXPIRED, INCOMPATIBLE_USAGE, MALFORMED, UNHANDLED_EXTENSION, UNKNOWN_AUTHORITY};

/// True if webpki rejects the leaf because of its kind.
pub(super) fn is_direct_leaf(leaf: &[u8]) -> bool {
    let Ok((_, leaf)) = X509Certificate::from_der(leaf) else { return false };
    let is_any = leaf.extended_key_usage().is_ok_and(|usage| usage.is_some_and(|usage| usage.value.any));
    leaf.version() == X509Version::V1 || leaf.is_ca() || is_any
}

/// Verifies that one of the roots has signed the leaf, and that the leaf is valid at `now` and usable by clients.
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
    if let Some(usage) = leaf.extended_key_usage().map_err(|_| MALFORMED)?
        && !(usage.value.any || usage.value.client_auth)
    {
        return Err(INCOMPATIBLE_USAGE);
    }
    let is_handled = |extension: &ParsedExtension<'_>| {
        matches!(
            extension,
            ParsedExtension::BasicConstraints(_)
                | ParsedExtension::KeyUsage(_)
                | ParsedExtension::ExtendedKeyUsage(_)
                | ParsedExtension::SubjectAlternativeName(_)
        )
    };
    if leaf.extensions().iter().any(|e| e.critical && !is_handled(e.parsed_extension())) {
        return Err(UNHANDLED_EXTENSION);
    }
    let signed = |root: &CertificateDer<'static>| {
        let Ok((_, root)) = X509Certificate::from_der(root) else { return false };
        root.is_ca()
            // Name constraints are not supported here.
            && root.name_constraints().is_ok_and(|constraints| constraints.is_none())
            && root.subject().as_raw() == leaf.issuer().as_raw()
            && has_signed(&root, &leaf, algorithms)
    };
    if roots.iter().any(signed) { Ok(()) } else { Err(UNKNOWN_AUTHORITY) }
}
