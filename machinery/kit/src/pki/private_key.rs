//! Private keys: the public key that belongs to one.

use rustls_pki_types::PrivateKeyDer;

use crate::tls::provider;

/// DER of the public key (`SubjectPublicKeyInfo`) of a private key in PKCS #1, PKCS #8 or SEC 1. Returns `None` if the private
/// key cannot be read.
pub fn public_key_of(private_key: &[u8]) -> Option<Vec<u8>> {
    let key = PrivateKeyDer::try_from(private_key).ok()?.clone_key();
    let key = provider().key_provider.load_private_key(key).ok()?;
    Some(key.public_key()?.to_vec())
}
