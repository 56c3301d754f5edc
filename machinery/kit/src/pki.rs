//! Certificates: parsing, issuing, and verification of client chains.
//!
//! Does not depend on users or permissions: a chain is valid or not, and other crates decide about the permissions
//! of its subject.

mod authority;
mod certificate_request;
mod chain;
mod files;
mod info;
mod private_key;
mod profile;
mod request;
mod request_signer;
mod signature;
mod tbs;

pub use authority::{Authority, SignedCertificate};
pub use certificate_request::CertificateRequest;
pub use files::PairFiles;
pub use info::CertInfo;
pub use private_key::public_key_of;
pub use profile::{CertProfile, CertUsage, PemPair};
pub use request::SigningRequest;
pub use request_signer::RequestSigner;
pub use signature::has_signed;
pub use tbs::CertificateTerms;

use std::io;
use std::path::PathBuf;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::{self, PemObject};

use crate::tls::TlsError;

/// Error of issuing, loading or storing certificates.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file could not be read or written.
    #[error("{}: {}", path.display(), portico_gostd::os::error_text(source))]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A certificate could not be issued.
    #[error("cannot issue a certificate for {}", portico_gostd::strconv::quote(name))]
    Issue {
        /// Common name or description of the certificate.
        name: String,
        /// Error of the library.
        source: rcgen::Error,
    },
    /// The input is not usable.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The input is not an X.509 certificate.
    #[error("not an X.509 certificate: {0}")]
    Parse(String),
    /// The folder contains only one file of a pair.
    #[error(
        "{} exists, but {} is missing: restore the missing file of the pair, or remove the remaining one",
        present.display(), missing.display()
    )]
    IncompletePair {
        /// Path of the existing file.
        present: PathBuf,
        /// Path of the missing file.
        missing: PathBuf,
    },
    /// The file contains a certificate that another CA has issued.
    #[error(
        "{}: not issued by the CA of this folder, and therefore not overwritten: remove the file, or choose another folder \
         with --cert-dir",
        path.display()
    )]
    ForeignCertificate {
        /// Path of the file.
        path: PathBuf,
    },
}

/// Number of characters of a line of PEM.
const PEM_LINE: usize = 64;

/// Common name of the internal CA that a control service creates.
pub const INTERNAL_CA: &str = "portico-internal-ca";

/// Common name of the CA of front proxies that a control service creates.
pub const FRONT_PROXY_CA: &str = "portico-front-proxy-ca";

/// Parses all certificates of a PEM text, at least one; `label` names the text in errors.
pub fn parse_certs(label: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certs: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certs =
        certs.map_err(|error| TlsError::Pem { label: label.to_owned(), reason: pem_reason(&error) })?;
    if certs.is_empty() {
        return Err(TlsError::Empty { label: label.to_owned(), missing: "certificate" });
    }
    Ok(certs)
}

/// Returns the reason of a PEM error. The library prints its markers as lists of bytes.
pub fn pem_reason(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { end_marker } => {
            format!("a section has no end: {:?} is missing", String::from_utf8_lossy(end_marker))
        }
        pem::Error::IllegalSectionStart { line } => {
            format!("{:?} begins no section", String::from_utf8_lossy(line))
        }
        pem::Error::Base64Decode(_) => "a section is not base64".to_owned(),
        pem::Error::NoItemsFound => "no PEM section found".to_owned(),
        _ => "a section cannot be read".to_owned(),
    }
}

/// Returns a root store with every certificate of a PEM bundle. Errors name an unusable certificate by its position.
pub fn root_store(label: &str, pem: &[u8]) -> Result<RootCertStore, TlsError> {
    build_root_store(label, parse_certs(label, pem)?, |_| true)
}

/// Returns a root store with the authorities of a bundle. A server's certificate may not sign others, as in Go
/// (`CheckSignatureFrom`).
pub(crate) fn authority_store(
    label: &str,
    certs: Vec<CertificateDer<'static>>,
) -> Result<RootCertStore, TlsError> {
    let may_sign = |cert: &CertificateDer<'_>| {
        CertInfo::parse(cert).is_ok_and(|info| info.is_ca || info.predates_extensions)
    };
    build_root_store(label, certs, may_sign)
}

fn build_root_store(
    label: &str,
    certs: Vec<CertificateDer<'static>>,
    keep: impl Fn(&CertificateDer<'_>) -> bool,
) -> Result<RootCertStore, TlsError> {
    let (mut store, mut others) = (RootCertStore::empty(), RootCertStore::empty());
    for (index, cert) in certs.into_iter().enumerate() {
        let into = if keep(&cert) { &mut store } else { &mut others };
        into.add(cert).map_err(|_| TlsError::Certificate {
            label: format!("{label}: certificate {}", index + 1),
            reason: "not an X.509 certificate that can be trusted".to_owned(),
        })?;
    }
    Ok(store)
}

/// Encodes one section of PEM.
pub fn pem_text(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(PEM_LINE) {
        pem.extend(line.iter().copied().map(char::from));
        pem.push('\n');
    }
    pem + &format!("-----END {label}-----\n")
}

/// Returns the SHA-256 hash of the DER of a certificate.
pub fn fingerprint(der: &[u8]) -> [u8; 32] {
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(digest(&SHA256, der).as_ref());
    fingerprint
}

#[cfg(test)]
mod tests;
