//! The server's certificate, generated or from files, and verification of client certificates.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// A serving certificate with its key and its CA.
pub struct Identity {
    cert_pem: String,
    key_pem: String,
    pub ca_pem: String,
}

impl Identity {
    pub fn read(cert: &Path, key: &Path, ca: &Path) -> Result<Self, Box<dyn Error>> {
        let read = std::fs::read_to_string;
        Ok(Self { cert_pem: read(cert)?, key_pem: read(key)?, ca_pem: read(ca)? })
    }

    /// Reads the identity of an earlier run from the files next to `file` with the extensions `.crt`, `.key` and `.ca`,
    /// or generates one and writes it there.
    pub fn load_or_create(file: &Path, names: &[String], address: IpAddr) -> Result<Self, Box<dyn Error>> {
        let [cert, key, ca] = ["crt", "key", "ca"].map(|extension| file.with_extension(extension));
        if cert.exists() && key.exists() && ca.exists() {
            return Self::read(&cert, &key, &ca);
        }
        let identity = Self::generate(names, address)?;
        let mut private = OpenOptions::new();
        private.write(true).create(true).truncate(true).mode(0o600);
        private.open(&key)?.write_all(identity.key_pem.as_bytes())?;
        std::fs::write(&cert, &identity.cert_pem)?;
        std::fs::write(&ca, &identity.ca_pem)?;
        Ok(identity)
    }

    /// Generates a CA and a certificate for these names. The key of the CA is dropped.
    pub fn generate(names: &[String], address: IpAddr) -> Result<Self, Box<dyn Error>> {
        let ca_key = KeyPair::generate()?;
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "flunder-backend-ca");
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let ca_pem = ca.self_signed(&ca_key)?.pem();
        let issuer = Issuer::new(ca, ca_key);

        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names)?;
        params.subject_alt_names.push(SanType::IpAddress(address));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let cert_pem = params.signed_by(&key, &issuer)?.pem();
        Ok(Self { cert_pem, key_pem: key.serialize_pem(), ca_pem })
    }
}

/// Configures TLS 1.2 and 1.3 with HTTP/2 and HTTP/1.1. With a client CA, clients need a certificate of this CA: only
/// then can the server trust `X-Remote-User`.
pub fn server_config(identity: &Identity, client_ca: Option<&[u8]>) -> Result<ServerConfig, Box<dyn Error>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = match client_ca {
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for cert in CertificateDer::pem_slice_iter(pem) {
                roots.add(cert?)?;
            }
            builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?,
            )
        }
        None => builder.with_no_client_auth(),
    };
    let chain =
        CertificateDer::pem_slice_iter(identity.cert_pem.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes())?;
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
