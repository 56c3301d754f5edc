//! Checking a peer's chain per request, with the answer remembered per chain.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, RootCertStore};
use rustls_pki_types::{CertificateDer, UnixTime};
use sha2::{Digest, Sha256};

use super::{CertInfo, PkiError, root_store};
use crate::tls::{TlsError, provider};

/// Chains that one verifier remembers; when it is full, all are forgotten at once.
const CACHE: usize = 1024;

/// What a peer presented, hashed once per connection. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PeerChain {
    inner: Arc<Peer>,
}

#[derive(Debug)]
struct Peer {
    certs: Vec<CertificateDer<'static>>,
    digest: [u8; 32],
    info: CertInfo,
}

impl PeerChain {
    /// The leaf first, then intermediates, as on the wire. Fails on an empty chain or a leaf that
    /// cannot be parsed.
    pub fn new(certs: Vec<CertificateDer<'static>>) -> Result<Self, PkiError> {
        let Some(leaf) = certs.first() else {
            return Err(PkiError::Parse("no certificate".to_owned()));
        };
        let info = CertInfo::parse(leaf)?;
        let mut hash = Sha256::new();
        for cert in &certs {
            hash.update((cert.len() as u64).to_be_bytes());
            hash.update(cert);
        }
        Ok(Self { inner: Arc::new(Peer { digest: hash.finalize().into(), info, certs }) })
    }

    /// All certificates, the leaf first.
    pub fn certs(&self) -> &[CertificateDer<'static>] {
        &self.inner.certs
    }

    /// What the leaf says.
    pub fn info(&self) -> &CertInfo {
        &self.inner.info
    }

    /// A digest of the whole chain.
    pub fn digest(&self) -> &[u8; 32] {
        &self.inner.digest
    }
}

/// Why a chain is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// None of the roots signed it.
    #[error("certificate {subject:?} is signed by unknown authority {issuer:?}")]
    UnknownAuthority {
        /// The leaf's subject.
        subject: String,
        /// The leaf's issuer.
        issuer: String,
    },
    /// Outside of its validity; carries the bound that was crossed, RFC 3339.
    #[error("certificate {subject:?} has expired or is not yet valid: valid from {from} until {until}")]
    Validity {
        /// The leaf's subject.
        subject: String,
        /// Start.
        from: String,
        /// End.
        until: String,
    },
    /// Not meant for clients, or malformed in a way that webpki refuses.
    #[error("certificate {subject:?}: {reason}")]
    Unusable {
        /// The leaf's subject.
        subject: String,
        /// webpki's words.
        reason: String,
    },
}

/// Verifies client chains (usage clientAuth) against one set of roots. Clones share the memory.
#[derive(Clone, Debug)]
pub struct ChainVerifier {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    seen: Mutex<HashMap<[u8; 32], Verdict>>,
}

#[derive(Debug, Clone)]
struct Verdict {
    result: Result<(), ChainError>,
    /// Unix seconds between which the verdict holds.
    from: u64,
    until: u64,
}

impl ChainVerifier {
    /// Trusts the certificates of a PEM bundle; `what` names it in errors.
    pub fn from_pem(what: &str, pem: &[u8]) -> Result<Self, TlsError> {
        let roots = Arc::new(root_store(what, pem)?);
        Self::from_roots(what, roots)
    }

    /// Trusts nobody.
    pub fn nobody() -> Self {
        Self { inner: Arc::new(Inner { verifier: None, seen: Mutex::default() }) }
    }

    /// Trusts these roots.
    pub fn from_roots(what: &str, roots: Arc<RootCertStore>) -> Result<Self, TlsError> {
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
            .build()
            .map_err(|error| TlsError::Certificate { what: what.to_owned(), reason: error.to_string() })?;
        Ok(Self { inner: Arc::new(Inner { verifier: Some(verifier), seen: Mutex::default() }) })
    }

    /// Whether the chain is good at `now`. A verdict is remembered as long as it cannot change: until the
    /// first certificate of the chain expires, refusals for a minute.
    pub fn verify(&self, chain: &PeerChain, now: UnixTime) -> Result<(), ChainError> {
        let seconds = now.as_secs();
        if let Some(verdict) = self.inner.seen.lock().get(chain.digest())
            && (verdict.from..verdict.until).contains(&seconds)
        {
            return verdict.result.clone();
        }
        let result = self.verify_now(chain, now);
        let until = match &result {
            Ok(()) => earliest_end(chain).unwrap_or(seconds),
            Err(_) => seconds + Duration::from_secs(60).as_secs(),
        };
        let mut seen = self.inner.seen.lock();
        if seen.len() >= CACHE {
            seen.clear();
        }
        seen.insert(*chain.digest(), Verdict { result: result.clone(), from: seconds, until });
        result
    }

    fn verify_now(&self, chain: &PeerChain, now: UnixTime) -> Result<(), ChainError> {
        let info = chain.info();
        let subject = || info.display_name();
        let unknown = || ChainError::UnknownAuthority { subject: subject(), issuer: info.issuer.clone() };
        let Some(verifier) = &self.inner.verifier else { return Err(unknown()) };
        let [leaf, intermediates @ ..] = chain.certs() else { return Err(unknown()) };
        match verifier.verify_client_cert(leaf, intermediates, now) {
            Ok(_) => Ok(()),
            Err(rustls::Error::InvalidCertificate(cause)) => Err(match cause {
                CertificateError::UnknownIssuer => unknown(),
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => ChainError::Validity {
                    subject: subject(),
                    from: info.not_before_text(),
                    until: info.not_after_text(),
                },
                other => ChainError::Unusable { subject: subject(), reason: other.to_string() },
            }),
            Err(other) => Err(ChainError::Unusable { subject: subject(), reason: other.to_string() }),
        }
    }
}

fn earliest_end(chain: &PeerChain) -> Option<u64> {
    let ends = chain.certs().iter().map(|cert| CertInfo::parse(cert).map(|info| info.not_after));
    let earliest = ends.collect::<Result<Vec<_>, _>>().ok()?.into_iter().min()?;
    u64::try_from(earliest).ok()
}
