//! Who signs tokens, ourselves or somebody else, and the keys that tokens are checked with, which may change.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use portico_auth::authn::TokenKeys;
use portico_auth::jwt::{Claims, PublicKey, SigningKey};

/// A token on its way, or why there is none.
pub type Signing<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>>;

/// A look for newer keys on its way: whether keys were fetched since.
pub type Looking<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// Somebody else who signs tokens and has the keys.
pub trait ExternalSigner: Send + Sync {
    /// A compact token with these claims.
    fn sign<'a>(&'a self, claims: &'a Claims) -> Signing<'a>;

    /// Fetches keys now, for a token of a key that is not known, unless that was done just before.
    fn newer_keys(&self) -> Looking<'_>;
}

/// Who signs.
pub enum Signer {
    /// A key of our own.
    Own(SigningKey),
    /// Somebody else (`--service-account-signing-endpoint`).
    External(Arc<dyn ExternalSigner>),
}

impl Signer {
    /// A compact token with these claims.
    ///
    /// # Errors
    /// Why it is not signed.
    pub async fn sign(&self, claims: &Claims) -> Result<String, String> {
        match self {
            Self::Own(key) => key.sign(claims).map_err(|error| error.to_string()),
            Self::External(signer) => signer.sign(claims).await,
        }
    }

    /// Whether there may be newer keys than a moment ago.
    pub(crate) async fn newer_keys(&self) -> bool {
        match self {
            Self::Own(_) => false,
            Self::External(signer) => signer.newer_keys().await,
        }
    }
}

/// Whose tokens are trusted now.
#[derive(Debug)]
pub struct CurrentKeys(ArcSwap<TokenKeys>);

impl CurrentKeys {
    /// These.
    #[must_use]
    pub fn new(keys: TokenKeys) -> Self {
        Self(ArcSwap::from_pointee(keys))
    }

    /// Issuers, audiences and keys as they are now.
    #[must_use]
    pub fn load(&self) -> Arc<TokenKeys> {
        self.0.load_full()
    }

    /// Trusts these keys in the place of those before; issuers and audiences stay.
    pub fn replace(&self, keys: Vec<PublicKey>) {
        let before = self.0.load();
        let (issuers, audiences) = (before.issuers.clone(), before.audiences.clone());
        self.0.store(Arc::new(TokenKeys { issuers, audiences, keys }));
    }
}
