//! The client side: whom to trust, as whom to appear, what to speak.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;

use super::anchor::Anchors;
use super::fault::{AcceptAny, ExplainingVerifier};
use super::{CertPair, MinVersion, TlsError, provider};
use crate::pki;

/// Sessions that one [`ClientTls`] remembers.
const SESSIONS: usize = 64;

/// Whom a client trusts.
#[derive(Clone, Debug)]
pub enum Roots {
    /// The system's roots, loaded once per process.
    System,
    /// The certificates of this PEM bundle, and nobody else. `what` names it in errors.
    Pem {
        /// Where the bundle comes from (`caBundle`, a file).
        what: String,
        /// The PEM text.
        pem: Arc<[u8]>,
    },
    /// Anybody. Only where a user has asked for it.
    Insecure,
}

impl Roots {
    /// A PEM bundle; an empty one means the system's roots (upstream's rule for caBundle).
    pub fn bundle(what: &str, pem: &[u8]) -> Self {
        if pem.is_empty() { Self::System } else { Self::Pem { what: what.to_owned(), pem: pem.into() } }
    }
}

/// Which protocols a client offers.
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

/// A client's TLS settings. Clones share sessions; [`ClientTls::id`] distinguishes equal ones.
#[derive(Clone, Debug)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
    id: u64,
}

/// Builds a [`ClientTls`].
#[derive(Clone, Debug)]
pub struct ClientTlsBuilder {
    roots: Roots,
    alpn: Alpn,
    server_name: Option<String>,
    client_cert: Option<CertPair>,
    min_version: MinVersion,
}

impl ClientTls {
    /// System roots, `http/1.1`, no client certificate, the dialed host as server name.
    pub fn builder() -> ClientTlsBuilder {
        ClientTlsBuilder {
            roots: Roots::System,
            alpn: Alpn::default(),
            server_name: None,
            client_cert: None,
            min_version: MinVersion::default(),
        }
    }

    /// For rustls. Cloning it shares its session cache.
    pub fn config(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }

    /// The name that is sent and verified, whatever host is dialed.
    pub fn server_name(&self) -> Option<&ServerName<'static>> {
        self.server_name.as_ref()
    }

    /// The same trust, identity and server name with other protocols and an own id.
    pub fn with_alpn(&self, alpn: Alpn) -> Self {
        let mut config = self.config.as_ref().clone();
        config.alpn_protocols = alpn.protocols();
        Self { config: Arc::new(config), server_name: self.server_name.clone(), id: next_id() }
    }

    /// The same trust, identity, protocols and sessions under another server name, with an own id: thousands of
    /// backends under one CA share one configuration.
    pub fn with_server_name(&self, name: impl Into<String>) -> Result<Self, TlsError> {
        let server_name = Some(server_name(name.into())?);
        Ok(Self { config: self.config.clone(), server_name, id: next_id() })
    }

    /// [`ClientTls::with_server_name`].
    pub fn for_server_name(&self, name: &str) -> Result<Self, TlsError> {
        self.with_server_name(name)
    }

    /// Unique per built value; clones have the same. Pools use it as a key.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl ClientTlsBuilder {
    /// Whom to trust.
    pub fn roots(mut self, roots: Roots) -> Self {
        self.roots = roots;
        self
    }

    /// What to offer.
    pub fn alpn(mut self, alpn: Alpn) -> Self {
        self.alpn = alpn;
        self
    }

    /// The name to send and to verify instead of the dialed host.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// The client's certificate.
    pub fn client_cert(mut self, pair: Option<CertPair>) -> Self {
        self.client_cert = pair;
        self
    }

    /// Lowest version.
    pub fn min_version(mut self, version: MinVersion) -> Self {
        self.min_version = version;
        self
    }

    /// Checks everything. An unparsable bundle names itself and the certificate in it.
    pub fn build(self) -> Result<ClientTls, TlsError> {
        let server_name = self.server_name.map(server_name).transpose()?;
        let provider = provider();
        let verifier: Arc<dyn ServerCertVerifier> = match &self.roots {
            Roots::Insecure => Arc::new(AcceptAny::new(provider.clone())),
            Roots::System => explaining(system_roots()?, Anchors::default(), "system roots")?,
            Roots::Pem { what, pem } => {
                let certs = pki::parse_certs(what, pem)?;
                let anchors = Anchors::new(&certs);
                explaining(Arc::new(pki::authority_store(what, certs)?), anchors, what)?
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
        // Connections are pooled, so that few sessions are resumed; the default cache has four times the size.
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

/// A host name or address as rustls wants it.
pub(crate) fn server_name(name: String) -> Result<ServerName<'static>, TlsError> {
    let bare = name.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_owned();
    ServerName::try_from(bare)
        .map_err(|_| TlsError::Unsupported(format!("{name:?} is not a valid server name")))
}

fn explaining(
    roots: Arc<RootCertStore>,
    anchors: Anchors,
    what: &str,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    if roots.is_empty() {
        return Ok(Arc::new(ExplainingVerifier::new(None, anchors, provider())));
    }
    let inner = WebPkiServerVerifier::builder_with_provider(roots, provider())
        .build()
        .map_err(|error| TlsError::Certificate { what: what.to_owned(), reason: error.to_string() })?;
    Ok(Arc::new(ExplainingVerifier::new(Some(inner), anchors, provider())))
}

/// Loaded at first use and then kept, also when some of the system's files are bad.
fn system_roots() -> Result<Arc<RootCertStore>, TlsError> {
    static ROOTS: OnceLock<Result<Arc<RootCertStore>, String>> = OnceLock::new();
    let load = || {
        let found = rustls_native_certs::load_native_certs();
        let mut store = RootCertStore::empty();
        let (added, ignored) = store.add_parsable_certificates(found.certs);
        if added == 0 {
            let errors: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
            return Err(format!("none found ({})", errors.join("; ")));
        }
        tracing::debug!(added, ignored, errors = found.errors.len(), "loaded the system's trusted roots");
        Ok(Arc::new(store))
    };
    ROOTS.get_or_init(load).clone().map_err(TlsError::SystemRoots)
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
