//! Whether a chain of client certificates leads to a root. What a chain is trusted to say is authentication's.

use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::{CertificateDer, UnixTime};

use super::root_store;
use crate::tls::provider;

/// Whether the leaf (first) may act as a client for whoever trusts this root (PEM), at this time.
pub(super) fn is_client_of(root_pem: &str, chain: &[CertificateDer<'static>], now: UnixTime) -> bool {
    let Some((leaf, intermediates)) = chain.split_first() else { return false };
    let Ok(roots) = root_store("authority", root_pem.as_bytes()) else { return false };
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    verifier.is_ok_and(|v| v.verify_client_cert(leaf, intermediates, now).is_ok())
}
