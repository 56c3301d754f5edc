//! Certificates for tests: separate authorities, created with rcgen directly, so that certificates of the system are not
//! verified with its own code.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// A certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Certificate of the authority.
    pub pem: String,
}

/// A certificate and its key.
#[derive(Clone)]
pub struct CertPair {
    /// Certificate as PEM.
    pub cert: String,
    /// Private key.
    pub key: String,
}

impl Authority {
    /// Creates an authority.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Issues a certificate for a server with these names or addresses.
    pub fn server(&self, names: &[&str]) -> CertPair {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        self.sign(params, "server")
    }

    /// Issues an expired certificate for a server.
    pub fn expired_server(&self, names: &[&str]) -> CertPair {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        self.sign(params, "server")
    }

    /// Issues a certificate for a client with this user name and these groups.
    pub fn client(&self, user: &str, groups: &[&str]) -> CertPair {
        self.sign(client(groups), user)
    }

    /// Issues an expired certificate for a client.
    pub fn expired_client(&self, user: &str, groups: &[&str]) -> CertPair {
        let mut params = client(groups);
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        self.sign(params, user)
    }

    fn sign(&self, mut params: CertificateParams, name: &str) -> CertPair {
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        CertPair { cert: cert.pem(), key: key.serialize_pem() }
    }
}

/// Returns a self-signed certificate that is an authority and a server in one, as `openssl req -x509` creates.
pub fn self_signed(names: &[&str]) -> CertPair {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&key).unwrap();
    CertPair { cert: cert.pem(), key: key.serialize_pem() }
}

fn client(groups: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
    // A name contains one value of each type, so the second organization has a custom type with the same number.
    let kinds = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
    assert!(groups.len() <= kinds.len(), "at most {} groups: {groups:?}", kinds.len());
    for (kind, group) in kinds.into_iter().zip(groups) {
        params.distinguished_name.push(kind, *group);
    }
    params
}

/// Clients that a server accepts; authorities are PEM.
#[derive(Clone, Copy, Debug)]
pub enum Clients<'a> {
    /// All clients; no certificate is requested.
    Any,
    /// All clients; a certificate of this authority identifies the client.
    Optional(&'a str),
    /// Clients with a certificate of this authority.
    Required(&'a str),
}

impl Clients<'_> {
    fn verifier(self) -> Option<Arc<dyn ClientCertVerifier>> {
        let (Self::Optional(authority) | Self::Required(authority)) = self else { return None };
        let mut roots = RootCertStore::empty();
        certificates(authority.as_bytes()).into_iter().for_each(|cert| roots.add(cert).unwrap());
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots));
        let is_optional = matches!(self, Self::Optional(_));
        let verifier = if is_optional { verifier.allow_unauthenticated() } else { verifier };
        Some(verifier.build().unwrap())
    }
}

impl CertPair {
    /// Returns the TLS acceptor of a server for HTTP/1.1.
    pub fn acceptor(&self, clients: Clients<'_>) -> TlsAcceptor {
        crate::install_provider();
        let (chain, key) = self.der();
        let builder = ServerConfig::builder();
        let builder = match clients.verifier() {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let mut tls = builder.with_single_cert(chain, key).unwrap();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(tls))
    }

    /// Returns certificate and key for rustls.
    pub fn der(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let certs = CertificateDer::pem_slice_iter(self.cert.as_bytes()).map(Result::unwrap).collect();
        (certs, PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap())
    }
}

/// Returns the certificates of a PEM text.
pub fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).map(Result::unwrap).collect()
}
