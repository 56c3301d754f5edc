//! Certificate chain with its matching private key.

use std::sync::Arc;

use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::{TlsError, provider};
use crate::pki::{self, CertInfo};

/// Certificate with intermediates and key. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CertPair {
    key: Arc<CertifiedKey>,
    info: Arc<CertInfo>,
}

impl CertPair {
    /// Parses PEM; `label` names the pair in errors. The key must match the first certificate.
    pub fn from_pem(label: &str, cert_pem: &[u8], key_pem: &[u8]) -> Result<Self, TlsError> {
        let chain = pki::parse_certs(label, cert_pem)?;
        let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| match error {
            rustls_pki_types::pem::Error::NoItemsFound => {
                TlsError::Empty { label: label.to_owned(), missing: "private key" }
            }
            other => TlsError::Pem { label: label.to_owned(), reason: pki::pem_reason(&other) },
        })?;
        Self::from_der(label, chain, key)
    }

    /// Parses DER; `label` names the pair in errors. The key must match the first certificate.
    pub fn from_der(
        label: &str,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, TlsError> {
        let Some(leaf) = chain.first() else {
            return Err(TlsError::Empty { label: label.to_owned(), missing: "certificate" });
        };
        let info = CertInfo::parse(leaf)
            .map_err(|error| TlsError::Certificate { label: label.to_owned(), reason: error.to_string() })?;
        let key = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => TlsError::Mismatch { label: label.to_owned() },
            _ => TlsError::Certificate {
                label: label.to_owned(),
                reason: "unsupported private key".to_owned(),
            },
        })?;
        Ok(Self { key: Arc::new(key), info: Arc::new(info) })
    }

    /// Returns the certificates, leaf first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.key.cert
    }

    /// Returns the contents of the leaf.
    pub fn info(&self) -> &CertInfo {
        &self.info
    }

    /// Returns the pair for rustls.
    pub fn certified_key(&self) -> Arc<CertifiedKey> {
        self.key.clone()
    }
}

impl PartialEq for CertPair {
    /// Compares only the certificates, because a certificate determines its key.
    fn eq(&self, other: &Self) -> bool {
        self.key.cert == other.key.cert
    }
}
