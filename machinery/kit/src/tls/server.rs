//! Server side of TLS: certificates can be replaced while serving; clients are requested to present a certificate, of which
//! only possession of the key is verified.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, verify_tls12_signature, verify_tls13_signature, verify_tls13_signature_with_raw_key,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use super::{CertPair, MinVersion, TlsError, provider_with};

/// Certificate for particular server names.
#[derive(Clone, Debug)]
pub struct SniCert {
    /// Certificate and key.
    pub pair: CertPair,
    /// Server names (`a.example`, `*.example`); if empty, the names in the certificate.
    pub names: Vec<String>,
}

/// TLS options of a listener.
#[derive(Clone, Debug)]
pub struct ServerTlsOptions {
    /// Minimum TLS version.
    pub min_version: MinVersion,
    /// Names of the TLS 1.2 suites; empty means all.
    pub cipher_suites: Vec<String>,
    /// Numbers of the key exchanges; empty means all.
    pub key_exchanges: Vec<u16>,
    /// Protocols that are offered, in order of preference.
    pub alpn: Vec<Vec<u8>>,
    /// True if clients are requested to present a certificate.
    pub request_client_cert: bool,
}

impl Default for ServerTlsOptions {
    /// Defaults: TLS 1.2 and 1.3, `h2` and `http/1.1`, client certificates requested.
    fn default() -> Self {
        Self {
            min_version: MinVersion::default(),
            cipher_suites: Vec::new(),
            key_exchanges: Vec::new(),
            alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            request_client_cert: true,
        }
    }
}

/// TLS settings of a listener. Clones share the certificates.
#[derive(Clone, Debug)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    certs: Arc<CertResolver>,
}

#[derive(Debug)]
struct CertResolver {
    current: ArcSwap<CertSet>,
}

#[derive(Debug)]
struct CertSet {
    default: CertPair,
    by_name: HashMap<String, Arc<CertifiedKey>>,
    default_key: Arc<CertifiedKey>,
}

impl ServerTls {
    /// Returns settings with a default pair and pairs by name. An exact name has precedence over a wildcard, then
    /// over the default.
    pub fn new(default: CertPair, sni: &[SniCert], options: &ServerTlsOptions) -> Result<Self, TlsError> {
        let provider = provider_with(&options.cipher_suites, &options.key_exchanges)?;
        let certs = Arc::new(CertResolver { current: ArcSwap::from_pointee(CertSet::new(default, sni)) });
        let versions = options.min_version.versions();
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(|error| TlsError::Unsupported(error.to_string()))?;
        let builder = if options.request_client_cert {
            builder.with_client_cert_verifier(Arc::new(PossessionVerifier { provider: provider.clone() }))
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder.with_cert_resolver(certs.clone());
        config.alpn_protocols.clone_from(&options.alpn);
        // Tickets contain the client's chain. Sends one per connection, as Go does.
        config.send_tls13_tickets = 1;
        config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new()
            .map_err(|error| TlsError::Unsupported(format!("session tickets: {error}")))?;
        Ok(Self { config: Arc::new(config), certs })
    }

    /// Replaces all certificates. Open connections are not affected.
    pub fn replace(&self, default: CertPair, sni: &[SniCert]) {
        self.certs.current.store(Arc::new(CertSet::new(default, sni)));
    }

    /// Replaces the default pair without changing the pairs by name.
    pub fn replace_default(&self, default: CertPair) {
        self.certs.current.rcu(|current| CertSet {
            default_key: default.certified_key(),
            default: default.clone(),
            by_name: current.by_name.clone(),
        });
    }

    /// Returns the current default pair.
    pub fn default_pair(&self) -> CertPair {
        self.certs.current.load().default.clone()
    }

    /// Returns the configuration for rustls and tonic.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    /// Returns an acceptor for one handshake.
    pub fn acceptor(&self) -> tokio_rustls::TlsAcceptor {
        tokio_rustls::TlsAcceptor::from(self.config.clone())
    }
}

impl CertSet {
    fn new(default: CertPair, sni: &[SniCert]) -> Self {
        let mut by_name = HashMap::new();
        for cert in sni {
            let names = if cert.names.is_empty() { &cert.pair.info().dns_names } else { &cert.names };
            for name in names {
                // The first pair with a name has precedence.
                by_name.entry(name.to_ascii_lowercase()).or_insert_with(|| cert.pair.certified_key());
            }
        }
        Self { default_key: default.certified_key(), default, by_name }
    }

    fn for_name(&self, name: &str) -> Arc<CertifiedKey> {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let wildcard = || {
            let (_, parent) = name.split_once('.')?;
            self.by_name.get(&format!("*.{parent}"))
        };
        self.by_name.get(&name).or_else(wildcard).unwrap_or(&self.default_key).clone()
    }
}

impl ResolvesServerCert for CertResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let certs = self.current.load();
        match hello.server_name() {
            Some(name) if !certs.by_name.is_empty() => Some(certs.for_name(name)),
            _ => Some(certs.default_key.clone()),
        }
    }
}

/// Verifier that accepts any chain whose owner signs the handshake. The identity is verified per request.
#[derive(Debug)]
struct PossessionVerifier {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for PossessionVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        match version1_key(cert) {
            // webpki does not support version 1, which openssl creates by default; the raw key is equally sufficient.
            Some(key) => verify_tls13_signature_with_raw_key(message, &key, dss, algorithms),
            None => verify_tls13_signature(message, cert, dss, algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns the public key of an X.509 version 1 certificate, or `None` for other versions.
fn version1_key(cert: &CertificateDer<'_>) -> Option<SubjectPublicKeyInfoDer<'static>> {
    let (_, parsed) = X509Certificate::from_der(cert).ok()?;
    let key = parsed.public_key().raw.to_vec();
    (parsed.version() == X509Version::V1).then(|| SubjectPublicKeyInfoDer::from(key))
}
