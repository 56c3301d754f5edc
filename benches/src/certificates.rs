//! Certificates of a run: one authority, and the certificates it signed for proxies, backends and clients.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use portico_kit::pki::{Authority, CertProfile, PemPair, parse_certs, root_store};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::{ResolvesServerCertUsingSni, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use crate::Failure;

/// Server name of the backend that proxies verify: Service `default/backend`.
pub(crate) const BACKEND_NAME: &str = "backend.default.svc";
const DAY: Duration = Duration::from_secs(86_400);

/// The key pairs of a run, and the files from which proxies read them.
pub(crate) struct Certificates {
    authority: Authority,
    /// Server certificate of the backend.
    backend: PemPair,
    /// Client certificate for proxies: a member of system:masters.
    admin: PemPair,
    folder: PathBuf,
}

impl Certificates {
    /// Issues all certificates and writes the files.
    pub(crate) fn make(folder: &Path) -> Result<Self, Failure> {
        let authority = Authority::create("bench-ca")?;
        let server = |name: &str| {
            let names = [name.to_owned(), "localhost".to_owned(), "127.0.0.1".to_owned()];
            authority.issue(&CertProfile::server(name, &names, DAY))
        };
        let (backend, front) = (server(BACKEND_NAME)?, server("front")?);
        let proxy = authority.issue(&CertProfile::client("front-proxy", &[], DAY))?;
        let admin = authority.issue(&CertProfile::client("admin", &["system:masters"], DAY))?;
        for (name, pair) in [("front", &front), ("proxy", &proxy)] {
            std::fs::write(folder.join(format!("{name}.crt")), &pair.cert_pem)?;
            std::fs::write(folder.join(format!("{name}.key")), &pair.key_pem)?;
        }
        std::fs::write(folder.join("ca.crt"), authority.cert_pem())?;
        Ok(Self { authority, backend, admin, folder: folder.to_owned() })
    }

    /// Returns the path of `ca.crt`, `front.crt` and `front.key` (served to clients), or `proxy.crt`
    /// and `proxy.key` (for backends).
    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// Returns the flags with which Portico uses these files.
    pub(crate) fn flags(&self) -> Vec<String> {
        let flags = [
            ("--tls-cert-file", "front.crt"),
            ("--tls-private-key-file", "front.key"),
            ("--client-ca-file", "ca.crt"),
            ("--proxy-client-cert-file", "proxy.crt"),
            ("--proxy-client-key-file", "proxy.key"),
        ];
        flags.into_iter().flat_map(|(flag, file)| [flag.to_owned(), self.file(file)]).collect()
    }

    /// The authority's certificate.
    pub(crate) fn ca_pem(&self) -> &str {
        self.authority.cert_pem()
    }

    /// Returns the TLS settings of a backend that requires client certificates of the authority. `others` are further server
    /// names with pairs that another authority signed.
    pub(crate) fn backend_tls(&self, others: &[(String, PemPair)]) -> Result<ServerConfig, Failure> {
        let roots = Arc::new(root_store("ca", self.ca_pem().as_bytes())?);
        let clients = WebPkiClientVerifier::builder(roots).build()?;
        let mut by_name = ResolvesServerCertUsingSni::new();
        by_name.add(BACKEND_NAME, certified(&self.backend)?)?;
        for (name, pair) in others {
            by_name.add(name, certified(pair)?)?;
        }
        let mut tls =
            ServerConfig::builder().with_client_cert_verifier(clients).with_cert_resolver(Arc::new(by_name));
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(tls)
    }

    /// Returns the TLS settings of a webhook, without client certificates.
    pub(crate) fn webhook_tls(&self) -> Result<ServerConfig, Failure> {
        let (chain, key) = der(&self.backend)?;
        let mut tls = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(tls)
    }

    /// Returns the TLS settings of a client that verifies proxies and presents the admin's certificate.
    pub(crate) fn client_tls(&self) -> Result<Arc<ClientConfig>, Failure> {
        let (chain, key) = der(&self.admin)?;
        let roots = root_store("ca", self.ca_pem().as_bytes())?;
        let mut tls =
            ClientConfig::builder().with_root_certificates(roots).with_client_auth_cert(chain, key)?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(tls))
    }
}

fn der(pair: &PemPair) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Failure> {
    let chain = parse_certs("pair", pair.cert_pem.as_bytes())?;
    Ok((chain, PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes())?))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn certified(pair: &PemPair) -> Result<CertifiedKey, Failure> {
    let (chain, key) = der(pair)?;
    Ok(CertifiedKey::from_der(chain, key, &provider())?)
}

/// Creates an authority; returns its certificate and a pair that it signed for this name.
pub(crate) fn issue_from_new_ca(name: &str) -> Result<(String, PemPair), Failure> {
    let authority = Authority::create(&format!("ca of {name}"))?;
    let pair = authority.issue(&CertProfile::server(name, &[name.to_owned()], DAY))?;
    Ok((authority.cert_pem().to_owned(), pair))
}

/// Returns the TLS settings of a client that trusts any server: for a first start, when the certificates do not exist yet.
pub(crate) fn trust_all_tls() -> Arc<ClientConfig> {
    let builder = ClientConfig::builder().dangerous();
    let verifier = Arc::new(TrustAll(provider()));
    Arc::new(builder.with_custom_certificate_verifier(verifier).with_no_client_auth())
}

#[derive(Debug)]
struct TrustAll(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustAll {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
