//! Verification of client certificate chains. Authentication derives the user from a verified chain.

use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::{CertificateDer, UnixTime};

use super::root_store;
use crate::tls::provider;

/// True if the leaf (first certificate) is valid as a client certificate at this time for a server that trusts this root (PEM).
pub(super) fn is_valid_client_chain(
    root_pem: &str,
    chain: &[CertificateDer<'static>],
    now: UnixTime,
) -> bool {
    let Some((leaf, intermediates)) = chain.split_first() else { return false };
    let Ok(roots) = root_store("authority", root_pem.as_bytes()) else { return false };
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    verifier.is_ok_and(|v| v.verify_client_cert(leaf, intermediates, now).is_ok())
}
