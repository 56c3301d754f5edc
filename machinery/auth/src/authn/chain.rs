//! Trusted authorities, and certificate chains of peers.
//!
//! The TLS layer only verifies possession of the key. This module verifies the chain per request
//! and per authority, so that a request with an expired certificate and a valid token runs as the user of the token. The verdict
//! is cached in the connection's [`PeerChain`] until the first of its certificates expires.

mod direct_leaf;
mod reason;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use portico_kit::pki::pem_reason;
use portico_machinery::UserInfo;
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, UnixTime};

use reason::chain_reason;

use super::error::AuthnError;
use super::method::{AuthnMethod, complete_user};
use super::x509;

/// Time for which a refusal is cached, since the certificate may become valid.
const REFUSAL_TTL: Duration = Duration::from_secs(5);
/// Maximum time for which an acceptance is cached.
const ACCEPTANCE_TTL: Duration = Duration::from_secs(300);
/// Number of verdicts cached per connection: four authorities, and one reload of each.
const MAX_VERDICTS: usize = 8;

/// Error of a bundle of trusted roots.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// The bundle contains no certificate.
    #[error("no certificate found")]
    Empty,
    /// A PEM block cannot be parsed.
    #[error("invalid PEM: {0}")]
    Pem(String),
    /// A certificate cannot be used as a root.
    #[error("certificate {0} is not an X.509 certificate that can be trusted")]
    Certificate(usize),
    /// The certificates cannot be used together.
    #[error("the certificates cannot be used as authorities")]
    Unusable,
}

/// Set of trusted roots: the client CA, the CA that signs requests, the front-proxy CA or the internal CA.
#[derive(Clone)]
pub struct TrustedAuthority {
    /// ID that is unique in the process, so that verdicts of a replaced bundle are not used for the new one.
    id: u64,
    verifier: Arc<dyn ClientCertVerifier>,
    roots: Arc<[CertificateDer<'static>]>,
}

impl fmt::Debug for TrustedAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustedAuthority").field("id", &self.id).finish_non_exhaustive()
    }
}

impl TrustedAuthority {
    /// Parses a PEM bundle of trusted certificates.
    ///
    /// # Errors
    /// Returns an error if the bundle is empty or malformed, or contains a certificate that cannot be a root.
    pub fn from_pem(pem: &[u8]) -> Result<Self, AuthorityError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        Self::new(&certificates.map_err(|e| AuthorityError::Pem(pem_reason(&e)))?)
    }

    /// Returns an authority that trusts these certificates.
    ///
    /// # Errors
    /// Returns the errors of [`Self::from_pem`].
    pub fn new(certificates: &[CertificateDer<'_>]) -> Result<Self, AuthorityError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if certificates.is_empty() {
            return Err(AuthorityError::Empty);
        }
        let mut roots = RootCertStore::empty();
        for (at, der) in certificates.iter().enumerate() {
            roots.add(der.clone().into_owned()).map_err(|_| AuthorityError::Certificate(at + 1))?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|_| AuthorityError::Unusable)?;
        let roots = certificates.iter().map(|c| c.clone().into_owned()).collect();
        Ok(Self { id: NEXT.fetch_add(1, Ordering::Relaxed), verifier, roots })
    }

    /// Returns the trusted certificates.
    #[must_use]
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.roots
    }

    /// Verifies that the chain leads to this authority and that all its certificates are valid at `now`,
    /// for client authentication.
    ///
    /// # Errors
    /// [`AuthnError::Chain`].
    pub fn verify(&self, peer: &PeerChain, now: UnixTime) -> Result<(), AuthnError> {
        if let Some(verdict) = peer.cached_verdict(self.id, now) {
            return verdict;
        }
        let verdict = self.verify_uncached(peer, now).map_err(|reason| AuthnError::Chain(reason.into()));
        peer.cache_verdict(self.id, now, &verdict);
        verdict
    }

    fn verify_uncached(&self, peer: &PeerChain, now: UnixTime) -> Result<(), &'static str> {
        let (leaf, intermediates) = peer.split();
        match self.verifier.verify_client_cert(leaf, intermediates, now) {
            Ok(_) => Ok(()),
            Err(_) if direct_leaf::is_direct_leaf(leaf) => {
                let provider = rustls::crypto::aws_lc_rs::default_provider();
                direct_leaf::verify(leaf, &self.roots, &provider.signature_verification_algorithms, now)
            }
            Err(error) => Err(chain_reason(&error)),
        }
    }
}

struct CachedVerdict {
    authority: u64,
    /// Expiration in seconds since the epoch. The verdict is not used from this time on, nor before `valid_from`, in case the
    /// clock is set back.
    valid_until: u64,
    valid_from: u64,
    verdict: Result<(), AuthnError>,
}

/// Certificates of one connection, leaf first, with cached verdicts.
///
/// Created once per connection, so that a chain is verified once per connection and authority.
pub struct PeerChain {
    leaf: CertificateDer<'static>,
    intermediates: Vec<CertificateDer<'static>>,
    subject: OnceLock<Result<x509::Subject, AuthnError>>,
    /// Users derived from the leaf by the client CA and by the internal CA.
    users: [OnceLock<UserResult>; 2],
    verdicts: Mutex<Vec<CachedVerdict>>,
}

/// User that a leaf names, or `None` if it has no CN.
type UserResult = Result<Option<Arc<UserInfo>>, AuthnError>;

impl fmt::Debug for PeerChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerChain").field("certificates", &(1 + self.intermediates.len())).finish()
    }
}

impl PeerChain {
    /// Returns the chain of a peer, or `None` if there are no certificates.
    #[must_use]
    pub fn new(certificates: &[CertificateDer<'_>]) -> Option<Self> {
        let (leaf, intermediates) = certificates.split_first()?;
        Some(Self {
            leaf: leaf.clone().into_owned(),
            intermediates: intermediates.iter().map(|c| c.clone().into_owned()).collect(),
            subject: OnceLock::new(),
            users: Default::default(),
            verdicts: Mutex::new(Vec::new()),
        })
    }

    /// Returns the unverified user of the leaf, only for messages about a connection.
    #[must_use]
    pub fn claimed_user(&self) -> Option<UserInfo> {
        x509::user(self.subject().ok()?).ok().flatten()
    }

    /// Returns the expiration of the leaf in seconds since the epoch, or `None` if it cannot be parsed.
    #[must_use]
    pub fn leaf_not_after(&self) -> Option<i64> {
        Some(self.subject().ok()?.not_after)
    }

    /// Returns the user of a verified leaf. All requests of the connection share it.
    pub(super) fn user(&self, method: AuthnMethod) -> UserResult {
        let user = || Ok(x509::user(self.subject()?)?.map(|user| complete_user(Arc::new(user), method)));
        self.users[usize::from(method == AuthnMethod::InternalCertificate)].get_or_init(user).clone()
    }

    pub(super) fn subject(&self) -> Result<&x509::Subject, AuthnError> {
        self.subject.get_or_init(|| x509::Subject::parse(&self.leaf)).as_ref().map_err(Clone::clone)
    }

    #[cfg(test)]
    pub(super) fn leaf_for_tests(&self) -> &CertificateDer<'static> {
        &self.leaf
    }

    fn split(&self) -> (&CertificateDer<'static>, &[CertificateDer<'static>]) {
        (&self.leaf, &self.intermediates)
    }

    fn cached_verdict(&self, authority: u64, now: UnixTime) -> Option<Result<(), AuthnError>> {
        let now = now.as_secs();
        let verdicts = self.verdicts.lock();
        let cached = verdicts.iter().find(|v| v.authority == authority)?;
        (cached.valid_from <= now && now < cached.valid_until).then(|| cached.verdict.clone())
    }

    fn cache_verdict(&self, authority: u64, now: UnixTime, verdict: &Result<(), AuthnError>) {
        let valid_from = now.as_secs();
        let valid_until = match verdict {
            Ok(()) => self.not_after().min(valid_from.saturating_add(ACCEPTANCE_TTL.as_secs())),
            Err(_) => valid_from.saturating_add(REFUSAL_TTL.as_secs()),
        };
        let mut verdicts = self.verdicts.lock();
        verdicts.retain(|v| v.authority != authority);
        if verdicts.len() >= MAX_VERDICTS {
            verdicts.remove(0);
        }
        verdicts.push(CachedVerdict { authority, valid_until, valid_from, verdict: verdict.clone() });
    }

    /// Returns the earliest expiration of the presented certificates, or 0 if one cannot be parsed.
    fn not_after(&self) -> u64 {
        let all = std::iter::once(&self.leaf).chain(&self.intermediates);
        all.map(|c| x509::not_after(c).unwrap_or(0)).min().unwrap_or(0)
    }
}
