//! Client side of TLS: trusted roots, client certificate, and offered protocols.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;

use super::anchor::Anchors;
use super::fault::{ExplainingVerifier, InsecureVerifier};
use super::{CertPair, MinVersion, TlsError, provider};
use crate::pki;

/// Number of sessions that one [`ClientTls`] caches.
const SESSIONS: usize = 64;

/// Trusted roots of a client.
#[derive(Clone, Debug)]
pub enum Roots {
    /// The system's roots, loaded once per process.
    System,
    /// Only the certificates of this PEM bundle. `label` names it in errors.
    Pem {
        /// Source of the bundle (`caBundle`, a file).
        label: String,
        /// PEM text.
        pem: Arc<[u8]>,
    },
    /// No verification. Only used if a user has requested it.
    Insecure,
}

impl Roots {
    /// Returns the roots of a PEM bundle; an empty bundle means the system's roots (upstream's rule for caBundle).
    pub fn bundle(label: &str, pem: &[u8]) -> Self {
        if pem.is_empty() { Self::System } else { Self::Pem { label: label.to_owned(), pem: pem.into() } }
    }
}

/// Protocols that a client offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Alpn {
    /// `http/1.1` only.
    #[default]
    Http1,
    /// `h2` only.
    Http2,
    /// `h2` first, then `http/1.1`.
    Both,
}

/// TLS settings of a client. Clones share sessions; [`ClientTls::id`] distinguishes equal settings.
#[derive(Clone, Debug)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
    id: u64,
}

/// Builder of a [`ClientTls`].
#[derive(Clone, Debug)]
pub struct ClientTlsBuilder {
    roots: Roots,
    alpn: Alpn,
    server_name: Option<String>,
    client_cert: Option<CertPair>,
    min_version: MinVersion,
}

impl ClientTls {
    /// Returns a builder with the system's roots, `http/1.1`, no client certificate, and the dialed host as server name.
    pub fn builder() -> ClientTlsBuilder {
        ClientTlsBuilder {
            roots: Roots::System,
            alpn: Alpn::default(),
            server_name: None,
            client_cert: None,
            min_version: MinVersion::default(),
        }
    }

    /// Returns the configuration for rustls. Clones share its session cache.
    pub fn config(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }

    /// Returns the server name that is sent and verified instead of the dialed host, if set.
    pub fn server_name(&self) -> Option<&ServerName<'static>> {
        self.server_name.as_ref()
    }

    /// Returns settings with the same trust, identity and server name, other protocols, and a new ID.
    pub fn with_alpn(&self, alpn: Alpn) -> Self {
        let mut config = self.config.as_ref().clone();
        config.alpn_protocols = alpn.protocols();
        Self { config: Arc::new(config), server_name: self.server_name.clone(), id: next_id() }
    }

    /// Returns settings with the same trust, identity, protocols and sessions, another server name, and a new ID. Thousands of
    /// backends with one CA share one configuration in this way.
    pub fn with_server_name(&self, name: impl Into<String>) -> Result<Self, TlsError> {
        let server_name = Some(server_name(name.into())?);
        Ok(Self { config: self.config.clone(), server_name, id: next_id() })
    }

    /// Returns settings with another server name; see [`ClientTls::with_server_name`].
    pub fn for_server_name(&self, name: &str) -> Result<Self, TlsError> {
        self.with_server_name(name)
    }

    /// Returns an ID that is unique per built value and shared by clones. Pools use it as a key.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl ClientTlsBuilder {
    /// Sets the trusted roots.
    pub fn roots(mut self, roots: Roots) -> Self {
        self.roots = roots;
        self
    }

    /// Sets the offered protocols.
    pub fn alpn(mut self, alpn: Alpn) -> Self {
        self.alpn = alpn;
        self
    }

    /// Sets the name to send and to verify instead of the dialed host.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Sets the client certificate.
    pub fn client_cert(mut self, pair: Option<CertPair>) -> Self {
        self.client_cert = pair;
        self
    }

    /// Sets the minimum TLS version.
    pub fn min_version(mut self, version: MinVersion) -> Self {
        self.min_version = version;
        self
    }

    /// Validates the settings. Errors name an invalid bundle and the certificate in it.
    pub fn build(self) -> Result<ClientTls, TlsError> {
        let server_name = self.server_name.map(server_name).transpose()?;
        let provider = provider();
        let verifier: Arc<dyn ServerCertVerifier> = match &self.roots {
            Roots::Insecure => Arc::new(InsecureVerifier::new(provider.clone())),
            Roots::System => explaining_verifier(system_roots()?, Anchors::default(), "system roots")?,
            Roots::Pem { label, pem } => {
                let certs = pki::parse_certs(label, pem)?;
                let anchors = Anchors::new(&certs);
                explaining_verifier(Arc::new(pki::authority_store(label, certs)?), anchors, label)?
            }
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(self.min_version.versions())
            .map_err(|error| TlsError::Unsupported(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match self.client_cert {
            Some(pair) => builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(
                pair.certified_key(),
            ))),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = self.alpn.protocols();
        // Connections are pooled, so few sessions are resumed; the default cache is four times as large.
        config.resumption = rustls::client::Resumption::in_memory_sessions(SESSIONS);
        Ok(ClientTls { config: Arc::new(config), server_name, id: next_id() })
    }
}

impl Alpn {
    fn protocols(self) -> Vec<Vec<u8>> {
        let (h2, http1) = (b"h2".to_vec(), b"http/1.1".to_vec());
        match self {
            Self::Http1 => vec![http1],
            Self::Http2 => vec![h2],
            Self::Both => vec![h2, http1],
        }
    }
}

/// Parses a host name or address for rustls.
pub(crate) fn server_name(name: String) -> Result<ServerName<'static>, TlsError> {
    let bare = name.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_owned();
    ServerName::try_from(bare)
        .map_err(|_| TlsError::Unsupported(format!("{name:?} is not a valid server name")))
}

fn explaining_verifier(
    roots: Arc<RootCertStore>,
    anchors: Anchors,
    label: &str,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    if roots.is_empty() {
        return Ok(Arc::new(ExplainingVerifier::new(None, anchors, provider())));
    }
    let inner = WebPkiServerVerifier::builder_with_provider(roots, provider())
        .build()
        .map_err(|error| TlsError::Certificate { label: label.to_owned(), reason: error.to_string() })?;
    Ok(Arc::new(ExplainingVerifier::new(Some(inner), anchors, provider())))
}

/// Returns the roots of the system, which are loaded at first use. Invalid files of the system are skipped.
fn system_roots() -> Result<Arc<RootCertStore>, TlsError> {
    static ROOTS: OnceLock<Result<Arc<RootCertStore>, String>> = OnceLock::new();
    let load = || {
        let native_certs = rustls_native_certs::load_native_certs();
        let mut store = RootCertStore::empty();
        let (added, ignored) = store.add_parsable_certificates(native_certs.certs);
        if added == 0 {
            let errors: Vec<String> = native_certs.errors.iter().map(ToString::to_string).collect();
            return Err(format!("none found ({})", errors.join("; ")));
        }
        tracing::debug!(
            added,
            ignored,
            errors = native_certs.errors.len(),
            "loaded the system's trusted roots"
        );
        Ok(Arc::new(store))
    };
    ROOTS.get_or_init(load).clone().map_err(TlsError::SystemRoots)
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
