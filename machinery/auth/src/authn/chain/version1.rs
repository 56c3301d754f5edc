//! Leaves of X.509 version 1, which `openssl x509 -req` makes unless told otherwise and webpki does not read.
//!
//! Such a certificate has no extensions: nothing restricts its use, and it can sign nothing. So one that a root has
//! signed itself is accepted, as upstream does; a chain with intermediates is not looked at.

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};
use x509_parser::x509::AlgorithmIdentifier;

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
) -> Result<(), String> {
    let (_, leaf) = X509Certificate::from_der(leaf).map_err(|e| e.to_string())?;
    let validity = leaf.validity();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < validity.not_before.timestamp() || now > validity.not_after.timestamp() {
        return Err("certificate has expired or is not yet valid".to_owned());
    }
    let signed = |root: &CertificateDer<'static>| {
        let Ok((_, root)) = X509Certificate::from_der(root) else { return false };
        root.is_ca()
            && root.subject().as_raw() == leaf.issuer().as_raw()
            && has_signed(&root, &leaf, algorithms)
    };
    if roots.iter().any(signed) { Ok(()) } else { Err("certificate signed by unknown authority".to_owned()) }
}

fn has_signed(
    root: &X509Certificate<'_>,
    leaf: &X509Certificate<'_>,
    algorithms: &WebPkiSupportedAlgorithms,
) -> bool {
    let key = root.public_key();
    algorithms.all.iter().any(|algorithm| {
        algorithm.public_key_alg_id().as_ref() == content(&key.algorithm)
            && algorithm.signature_alg_id().as_ref() == content(&leaf.signature_algorithm)
            && algorithm
                .verify_signature(
                    &key.subject_public_key.data,
                    leaf.tbs_certificate.as_ref(),
                    &leaf.signature_value.data,
                )
                .is_ok()
    })
}

/// The DER content of an algorithm identifier whose parameters are short and simple (none, NULL, a curve): all that
/// version 1 certificates are made with.
fn content(identifier: &AlgorithmIdentifier<'_>) -> Vec<u8> {
    let mut der = Vec::new();
    let mut value = |tag: u8, bytes: &[u8]| {
        if let Ok(length @ 0..128) = u8::try_from(bytes.len()) {
            der.extend([tag, length]);
            der.extend(bytes);
        }
    };
    value(6, identifier.algorithm.as_bytes());
    if let Some(parameters) = &identifier.parameters
        && let Ok(tag) = u8::try_from(parameters.header.tag().0)
        && !parameters.header.is_constructed()
    {
        value(tag, parameters.data);
    }
    der
}
