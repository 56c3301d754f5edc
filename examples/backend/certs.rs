//! The server's certificate, self-made or from files, and whom it lets in.

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

/// A certificate with its key, and the CA that vouches for it.
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

    /// The identity of an earlier run beside this file (`.crt`, `.key` and `.ca` in the place of its extension), or a new
    /// one that is kept there.
    pub fn kept(beside: &Path, names: &[String], address: IpAddr) -> Result<Self, Box<dyn Error>> {
        let [cert, key, ca] = ["crt", "key", "ca"].map(|extension| beside.with_extension(extension));
        if cert.exists() && key.exists() && ca.exists() {
            return Self::read(&cert, &key, &ca);
        }
        let made = Self::make(names, address)?;
        let mut private = OpenOptions::new();
        private.write(true).create(true).truncate(true).mode(0o600);
        private.open(&key)?.write_all(made.key_pem.as_bytes())?;
        std::fs::write(&cert, &made.cert_pem)?;
        std::fs::write(&ca, &made.ca_pem)?;
        Ok(made)
    }

    /// A fresh CA, whose key is forgotten at once, and a certificate for these names.
    pub fn make(names: &[String], address: IpAddr) -> Result<Self, Box<dyn Error>> {
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

/// TLS 1.2 and 1.3, HTTP/2 and 1.1. With a client CA, only its certificates get in: that is what makes
/// `X-Remote-User` believable.
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
