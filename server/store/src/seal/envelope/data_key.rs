//! Data keys of a KMS v2 provider: derived from a seed, or, in older values, a single key.

use aws_lc_rs::aead::{AES_256_GCM, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk};

use super::super::cipher::{CipherKey, random};
use super::super::error::SealError;

/// Minimum length of a seed.
pub(super) const SEED_BYTES: usize = 32;
/// Length of the random bytes that precede a value and from which its key is derived.
const INFO_BYTES: usize = 32;

/// A seed or a key.
pub(super) enum DataKey {
    /// Each value has its own key: HKDF-SHA256 expands the seed with random bytes (upstream's `extendedNonceGCM`).
    Seed(Prk),
    /// Key that only opens.
    Key(CipherKey),
}

impl DataKey {
    pub(super) fn from_seed(seed: &[u8]) -> Result<Self, SealError> {
        if seed.len() < SEED_BYTES {
            let length = seed.len();
            return Err(SealError::refused(format!("invalid seed length {length} used for key generation")));
        }
        Ok(Self::Seed(Prk::new_less_safe(HKDF_SHA256, seed)))
    }

    pub(super) fn from_key(key: &[u8]) -> Result<Self, SealError> {
        let key =
            CipherKey::aes_gcm(key).map_err(|error| SealError::refused(format!("crypto/aes: {error}")))?;
        Ok(Self::Key(key))
    }

    pub(super) fn seal(&self, plain: &[u8], aad: &[u8]) -> Result<Vec<u8>, SealError> {
        let Self::Seed(seed) = self else {
            return Err(SealError::refused("the key of a stored value cannot encrypt new values"));
        };
        let info: [u8; INFO_BYTES] = random()?;
        let mut out = info.to_vec();
        derive_key(seed, &info)?.seal(plain, aad, &mut out)?;
        Ok(out)
    }

    pub(super) fn open(&self, sealed: &[u8], aad: &[u8]) -> Result<Vec<u8>, SealError> {
        match self {
            Self::Key(key) => key.open(sealed, aad),
            Self::Seed(seed) => {
                let (info, body) = sealed.split_first_chunk::<INFO_BYTES>().ok_or_else(|| {
                    SealError::refused("the stored data was shorter than the required size")
                })?;
                derive_key(seed, info)?.open(body, aad)
            }
        }
    }
}

fn derive_key(seed: &Prk, info: &[u8; INFO_BYTES]) -> Result<CipherKey, SealError> {
    let info: [&[u8]; 1] = [info];
    let expanded = seed.expand(&info, &AES_256_GCM);
    let expanded = expanded.map_err(|_| SealError::refused("failed to KDF expand seed with info"))?;
    Ok(CipherKey::from_gcm(UnboundKey::from(expanded)))
}
