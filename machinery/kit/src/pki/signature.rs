//! Signature check between two certificates, which webpki offers only as a part of building a whole chain.

use rustls::crypto::WebPkiSupportedAlgorithms;
use x509_parser::prelude::X509Certificate;
use x509_parser::x509::AlgorithmIdentifier;

/// True if the key of `issuer` has signed `cert` with one of these algorithms. Does not check names, dates, or whether the
/// issuer may sign certificates.
pub fn has_signed(
    issuer: &X509Certificate<'_>,
    cert: &X509Certificate<'_>,
    algorithms: &WebPkiSupportedAlgorithms,
) -> bool {
    let key = issuer.public_key();
    algorithms.all.iter().any(|algorithm| {
        algorithm.public_key_alg_id().as_ref() == content(&key.algorithm)
            && algorithm.signature_alg_id().as_ref() == content(&cert.signature_algorithm)
            && algorithm
                .verify_signature(
                    &key.subject_public_key.data,
                    cert.tbs_certificate.as_ref(),
                    &cert.signature_value.data,
                )
                .is_ok()
    })
}

/// Returns the DER content of an algorithm identifier whose parameters are short and simple (absent, NULL, a curve). The
/// parameters of RSA-PSS are not, so this function does not support such signatures.
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
