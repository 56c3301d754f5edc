//! Ciphers of local keys, with the same layout as upstream: AES-CBC, AES-GCM, secretbox.

use std::fmt;

use aws_lc_rs::aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, PaddedBlockDecryptingKey,
    PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::rand;
use crypto_secretbox::aead::AeadInPlace;
use crypto_secretbox::{KeyInit, XSalsa20Poly1305};
use zeroize::Zeroizing;

use super::error::SealError;

const GCM_NONCE: usize = 12;
const GCM_TAG: usize = 16;
const CBC_BLOCK: usize = 16;
const BOX_NONCE: usize = 24;
const BOX_TAG: usize = 16;

const TOO_SHORT: &str = "the stored data was shorter than the required size";

/// Key of a length that the cipher does not accept.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("invalid key size {0}")]
pub struct KeyError(pub usize);

/// Key with its cipher. Its bytes are overwritten when it is dropped.
pub struct CipherKey(Cipher);

enum Cipher {
    Gcm(LessSafeKey),
    Cbc(Box<CbcKey>),
    Secretbox(Box<XSalsa20Poly1305>),
}

struct CbcKey {
    encrypting_key: PaddedBlockEncryptingKey,
    decrypting_key: PaddedBlockDecryptingKey,
}

impl CipherKey {
    /// Creates an AES-GCM key; each value is preceded by a random nonce.
    ///
    /// # Errors
    /// [`KeyError`] unless the key has 16, 24 or 32 bytes.
    pub fn aes_gcm(key: &[u8]) -> Result<Self, KeyError> {
        let wrong = |_| KeyError(key.len());
        let algorithm = match key.len() {
            16 => &AES_128_GCM,
            24 => &AES_192_GCM,
            32 => &AES_256_GCM,
            length => return Err(KeyError(length)),
        };
        Ok(Self(Cipher::Gcm(LessSafeKey::new(UnboundKey::new(algorithm, key).map_err(wrong)?))))
    }

    /// Creates an AES-CBC key with PKCS#7 padding; each value is preceded by a random initialization vector.
    ///
    /// # Errors
    /// [`KeyError`] unless the key has 16, 24 or 32 bytes.
    pub fn aes_cbc(key: &[u8]) -> Result<Self, KeyError> {
        let wrong = |_| KeyError(key.len());
        let algorithm: &'static Algorithm = match key.len() {
            16 => &AES_128,
            24 => &AES_192,
            32 => &AES_256,
            length => return Err(KeyError(length)),
        };
        let key = || UnboundCipherKey::new(algorithm, key).map_err(wrong);
        Ok(Self(Cipher::Cbc(Box::new(CbcKey {
            encrypting_key: PaddedBlockEncryptingKey::cbc_pkcs7(key()?).map_err(wrong)?,
            decrypting_key: PaddedBlockDecryptingKey::cbc_pkcs7(key()?).map_err(wrong)?,
        }))))
    }

    /// Creates an XSalsa20-Poly1305 key; each value is preceded by a random nonce.
    ///
    /// # Errors
    /// [`KeyError`] unless the key has 32 bytes.
    pub fn secretbox(key: &[u8]) -> Result<Self, KeyError> {
        let cipher = XSalsa20Poly1305::new_from_slice(key).map_err(|_| KeyError(key.len()))?;
        Ok(Self(Cipher::Secretbox(Box::new(cipher))))
    }

    /// Creates a `CipherKey` from an existing AES-256-GCM key.
    pub(super) fn from_gcm(key: UnboundKey) -> Self {
        Self(Cipher::Gcm(LessSafeKey::new(key)))
    }

    /// Appends the sealed bytes to `out`.
    pub(super) fn seal(&self, plain: &[u8], aad: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        let failed = |_| SealError::refused("the value could not be encrypted");
        match &self.0 {
            Cipher::Gcm(key) => {
                let nonce: [u8; GCM_NONCE] = random()?;
                let begin = append(out, &nonce, plain);
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag = key
                    .seal_in_place_separate_tag(nonce, Aad::from(aad), &mut out[begin..])
                    .map_err(failed)?;
                out.extend_from_slice(tag.as_ref());
            }
            Cipher::Cbc(key) => {
                let mut body = plain.to_vec();
                let context = key.encrypting_key.encrypt(&mut body).map_err(failed)?;
                let iv: &[u8] = (&context).try_into().map_err(failed)?;
                out.extend_from_slice(iv);
                out.extend_from_slice(&body);
            }
            Cipher::Secretbox(cipher) => {
                let nonce: [u8; BOX_NONCE] = random()?;
                out.extend_from_slice(&nonce);
                let at = append(out, &[0; BOX_TAG], plain);
                let tag = cipher.encrypt_in_place_detached(&nonce.into(), b"", &mut out[at..]);
                let tag = tag.map_err(|_| SealError::refused("the value could not be encrypted"))?;
                out[at - BOX_TAG..at].copy_from_slice(&tag);
            }
        }
        Ok(())
    }

    pub(super) fn open(&self, sealed: &[u8], aad: &[u8]) -> Result<Vec<u8>, SealError> {
        match &self.0 {
            Cipher::Gcm(key) => open_gcm(key, sealed, aad),
            Cipher::Cbc(key) => open_cbc(&key.decrypting_key, sealed),
            Cipher::Secretbox(cipher) => open_secretbox(cipher, sealed),
        }
    }
}

impl fmt::Debug for CipherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CipherKey(REDACTED)")
    }
}

/// Appends both parts. Returns the start of the second one.
fn append(out: &mut Vec<u8>, head: &[u8], body: &[u8]) -> usize {
    out.reserve(head.len() + body.len() + GCM_TAG);
    out.extend_from_slice(head);
    out.extend_from_slice(body);
    out.len() - body.len()
}

/// Returns random bytes of the operating system.
pub(super) fn random<const N: usize>() -> Result<[u8; N], SealError> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| SealError::refused("unable to read sufficient random bytes"))?;
    Ok(bytes)
}

fn open_gcm(key: &LessSafeKey, sealed: &[u8], aad: &[u8]) -> Result<Vec<u8>, SealError> {
    let (nonce, body) =
        sealed.split_first_chunk::<GCM_NONCE>().ok_or_else(|| SealError::refused(TOO_SHORT))?;
    let mut body = body.to_vec();
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let opened = key.open_in_place(nonce, Aad::from(aad), &mut body);
    let length = opened.map_err(|_| SealError::refused("cipher: message authentication failed"))?.len();
    body.truncate(length);
    Ok(body)
}

fn open_cbc(key: &PaddedBlockDecryptingKey, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
    let (iv, body) = sealed.split_first_chunk::<CBC_BLOCK>().ok_or_else(|| SealError::refused(TOO_SHORT))?;
    if body.len() % CBC_BLOCK != 0 {
        return Err(SealError::refused("the stored data is not a multiple of the block size"));
    }
    if body.is_empty() {
        return Err(SealError::refused("invalid PKCS7 data (empty or not padded)"));
    }
    let mut body = Zeroizing::new(body.to_vec());
    let context = DecryptionContext::Iv128(FixedLength::from(iv));
    let opened = key.decrypt(&mut body, context);
    Ok(opened.map_err(|_| SealError::refused("invalid padding on input"))?.to_vec())
}

fn open_secretbox(cipher: &XSalsa20Poly1305, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
    let short = || SealError::refused(TOO_SHORT);
    let (nonce, rest) = sealed.split_first_chunk::<BOX_NONCE>().ok_or_else(short)?;
    let (tag, body) = rest.split_first_chunk::<BOX_TAG>().ok_or_else(short)?;
    let mut body = body.to_vec();
    let opened = cipher.decrypt_in_place_detached(&(*nonce).into(), b"", &mut body, &(*tag).into());
    // Upstream's message for a box that cannot be opened.
    opened.map_err(|_| SealError::refused("output array was not large enough for encryption"))?;
    Ok(body)
}
