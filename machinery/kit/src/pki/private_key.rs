//! Public key of a private key.

use rustls_pki_types::PrivateKeyDer;

use crate::tls::provider;

/// Returns the DER of the public key (`SubjectPublicKeyInfo`) of a private key in PKCS #1, PKCS #8 or SEC 1, or `None` if the
/// private key cannot be parsed.
pub fn public_key_of(private_key: &[u8]) -> Option<Vec<u8>> {
    let key = PrivateKeyDer::try_from(private_key).ok()?.clone_key();
    let key = provider().key_provider.load_private_key(key).ok()?;
    Some(key.public_key()?.to_vec())
}
