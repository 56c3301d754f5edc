//! Interface of a KMS v2 key management service: wraps and unwraps keys, and reports its current key.

use std::collections::HashMap;

use futures::future::BoxFuture;
use zeroize::Zeroizing;

/// Status that a key service reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyStatus {
    /// API version of the service.
    pub version: String,
    /// `ok`, or a description of the problem.
    pub healthz: String,
    /// ID of the key that wraps now.
    pub key_id: String,
}

/// Key that a key service has wrapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrappedKey {
    /// Wrapped bytes.
    pub ciphertext: Vec<u8>,
    /// ID of the wrapping key.
    pub key_id: String,
    /// Data that the service requires for unwrapping.
    pub annotations: HashMap<String, Vec<u8>>,
}

/// Failure of a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct KeyServiceError {
    /// Message in upstream's format.
    pub text: String,
    /// gRPC code.
    pub code: &'static str,
    /// True if the service could not be reached; false if it refused.
    pub is_unreachable: bool,
}

/// Key service. Implementations set deadlines for their calls.
pub trait KeyService: Send + Sync + 'static {
    /// Returns the health and the current key.
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
