//! A key management service, as KMS v2 has it: wraps and unwraps keys, and reports with which key it does.

use std::collections::HashMap;

use futures::future::BoxFuture;
use zeroize::Zeroizing;

/// What a key service reports of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyStatus {
    /// The version of the API that it speaks.
    pub version: String,
    /// `ok`, or what is wrong.
    pub healthz: String,
    /// The key with which it wraps now.
    pub key_id: String,
}

/// A key that a key service has wrapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrappedKey {
    /// The wrapped bytes.
    pub ciphertext: Vec<u8>,
    /// With which key.
    pub key_id: String,
    /// What the service wants back for unwrapping.
    pub annotations: HashMap<String, Vec<u8>>,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct KeyServiceError {
    /// As upstream prints it.
    pub text: String,
    /// The gRPC code.
    pub code: &'static str,
    /// Whether the service was not reached, rather than refusing.
    pub passing: bool,
}

/// A key service. Each call has its deadline inside.
pub trait KeyService: Send + Sync + 'static {
    /// Its health and its key of now.
    fn status(&self) -> BoxFuture<'_, Result<KeyStatus, KeyServiceError>>;

    /// Wraps a key.
    fn encrypt<'a>(
        &'a self,
        uid: &'a str,
        plaintext: &'a [u8],
    ) -> BoxFuture<'a, Result<WrappedKey, KeyServiceError>>;

    /// Unwraps a key.
    fn decrypt<'a>(
        &'a self,
        uid: &'a str,
        wrapped: WrappedKey,
    ) -> BoxFuture<'a, Result<Zeroizing<Vec<u8>>, KeyServiceError>>;
}
