//! Providers: ways of sealing values, as an `EncryptionConfiguration` lists them: plain, with local keys, or with a key service.

use std::borrow::Cow;
use std::sync::Arc;

use super::cipher::CipherKey;
use super::envelope::Envelope;
use super::error::SealError;
use super::stored_value::{OpenedValue, StoredValue};

/// Providers of a resource: the first one seals, all of them can open.
pub(super) type Providers = Arc<[Arc<Provider>]>;

/// Cipher of local keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CipherKind {
    /// `aescbc`
    AesCbc,
    /// `aesgcm`
    AesGcm,
    /// `secretbox`
    Secretbox,
}

/// Entry of a list of providers.
#[derive(Debug)]
pub enum Provider {
    /// Stores values unchanged.
    Identity,
    /// Named local keys; the first one seals.
    Keys(CipherKind, Vec<(String, CipherKey)>),
    /// Keys that a key service wraps.
    Kms(Arc<Envelope>),
}

impl Provider {
    /// Returns upstream's prefix of values sealed by this provider.
    pub(super) fn prefix(&self) -> &str {
        match self {
            Self::Identity => "",
            Self::Keys(CipherKind::AesCbc, _) => "k8s:enc:aescbc:v1:",
            Self::Keys(CipherKind::AesGcm, _) => "k8s:enc:aesgcm:v1:",
            Self::Keys(CipherKind::Secretbox, _) => "k8s:enc:secretbox:v1:",
            Self::Kms(envelope) => envelope.prefix(),
        }
    }

    /// Returns the sealed value with its prefix; `None` if values are stored unchanged.
    pub(super) fn seal(&self, plain: &[u8], aad: &[u8]) -> Result<Option<Vec<u8>>, SealError> {
        let mut out = self.prefix().as_bytes().to_vec();
        match self {
            Self::Identity => return Ok(None),
            Self::Keys(_, keys) => {
                let Some((name, key)) = keys.first() else { return Err(SealError::refused("no keys")) };
                out.extend_from_slice(name.as_bytes());
                out.push(b':');
                key.seal(plain, aad, &mut out)?;
            }
            Self::Kms(envelope) => envelope.seal(plain, aad, &mut out)?,
        }
        Ok(Some(out))
    }

    /// Opens a value. Returns `None` if it was not sealed by this provider.
    pub(super) async fn open<'a>(
        &self,
        stored: StoredValue<'a>,
        aad: &[u8],
    ) -> Option<Result<OpenedValue<'a>, SealError>> {
        let sealed = match (self, stored) {
            (Self::Identity, StoredValue::Plain(json)) => {
                return Some(Ok(OpenedValue { json: json.into(), stale: false }));
            }
            (Self::Identity, _) | (_, StoredValue::Plain(_)) => return None,
            (_, StoredValue::Sealed(sealed)) => sealed.strip_prefix(self.prefix().as_bytes())?,
        };
        let opened = match self {
            Self::Identity => return None,
            Self::Keys(kind, keys) => open_with(*kind, keys, sealed, aad),
            Self::Kms(envelope) => envelope.open(sealed, aad).await,
        };
        Some(opened.map(|(json, stale)| OpenedValue { json: Cow::Owned(json), stale }))
    }
}

/// Tries the keys with a matching name in order. Also returns true if the key was not the first one.
fn open_with(
    kind: CipherKind,
    keys: &[(String, CipherKey)],
    sealed: &[u8],
    aad: &[u8],
) -> Result<(Vec<u8>, bool), SealError> {
    let mut errors = Vec::new();
    for (index, (name, key)) in keys.iter().enumerate() {
        let body = sealed.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b":"));
        let Some(body) = body else { continue };
        match key.open(body, aad) {
            Ok(json) => return Ok((json, index > 0)),
            Err(error) => errors.push(error),
        }
    }
    let family = if kind == CipherKind::Secretbox { "Secretbox" } else { "AES" };
    Err(SealError::combine(errors).unwrap_or_else(|| {
        SealError::refused(format!("no matching key was found for the provided {family} transformer"))
    }))
}
