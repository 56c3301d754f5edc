//! Whether one certificate has signed another: the step of chain building that webpki offers only as a part of the whole.

use rustls::crypto::WebPkiSupportedAlgorithms;
use x509_parser::prelude::X509Certificate;
use x509_parser::x509::AlgorithmIdentifier;

/// Whether the signature of `cert` is by the key of `issuer`, with one of these algorithms. Names, dates and what the
/// issuer may sign are not looked at.
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

/// The DER content of an algorithm identifier whose parameters are short and simple (none, NULL, a curve). Those of
/// RSA-PSS are not, so that such a signature does not count here.
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
