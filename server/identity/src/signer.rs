//! Signers of tokens (local key or external signer), and the current keys for verification.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use portico_auth::authn::TokenKeys;
use portico_auth::jwt::{Claims, PublicKey, SigningKey};

/// Future of a signed token, or an error message.
pub type SignFuture<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>>;

/// Future of a refresh of keys: true if keys were fetched.
pub type RefreshFuture<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// External signer of tokens, which also provides the public keys.
pub trait ExternalSigner: Send + Sync {
    /// Signs a compact token with these claims.
    fn sign<'a>(&'a self, claims: &'a Claims) -> SignFuture<'a>;

    /// Fetches the current keys, for a token with an unknown key, unless they were fetched shortly before.
    fn refresh_keys(&self) -> RefreshFuture<'_>;
}

/// Signer of tokens.
pub enum Signer {
    /// Local key.
    Local(SigningKey),
    /// External signer (`--service-account-signing-endpoint`).
    External(Arc<dyn ExternalSigner>),
}

impl Signer {
    /// Signs a compact token with these claims.
    ///
    /// # Errors
    /// Reason for which the token was not signed.
    pub async fn sign(&self, claims: &Claims) -> Result<String, String> {
        match self {
            Self::Local(key) => key.sign(claims).map_err(|error| error.to_string()),
            Self::External(signer) => signer.sign(claims).await,
        }
    }

    /// Fetches newer keys of an external signer. Returns true if keys were fetched.
    pub(crate) async fn refresh_keys(&self) -> bool {
        match self {
            Self::Local(_) => false,
            Self::External(signer) => signer.refresh_keys().await,
        }
    }
}

/// Current issuers, audiences and public keys of trusted tokens.
#[derive(Debug)]
pub struct CurrentKeys(ArcSwap<TokenKeys>);

impl CurrentKeys {
    /// Creates the initial keys.
    #[must_use]
    pub fn new(keys: TokenKeys) -> Self {
        Self(ArcSwap::from_pointee(keys))
    }

    /// Returns the current issuers, audiences and keys.
    #[must_use]
    pub fn load(&self) -> Arc<TokenKeys> {
        self.0.load_full()
    }

    /// Replaces the keys; issuers and audiences stay.
    pub fn replace(&self, keys: Vec<PublicKey>) {
        let before = self.0.load();
        let (issuers, audiences) = (before.issuers.clone(), before.audiences.clone());
        self.0.store(Arc::new(TokenKeys { issuers, audiences, keys }));
    }
}
