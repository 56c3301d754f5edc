//! `EncryptedObject`: upstream's format of a value of a KMS v2 provider.

use std::collections::HashMap;

use aws_lc_rs::digest::{SHA256, digest};
use portico_gostd::apimachinery::validation::dns1123_subdomain;
use prost::Message;

use super::error::SealError;
use super::key_service::WrappedKey;

/// The wrapped key is the data key.
pub(super) const AES_GCM_KEY: i32 = 0;
/// The wrapped key is the seed from which the key of each value is derived.
pub(super) const HKDF_SEED: i32 = 1;

const MAX_ANNOTATIONS: usize = 32 * 1024;
const MAX_KEY_ID: usize = 1024;
const MAX_WRAPPED_KEY: usize = 1024;

/// Upstream's message of the same name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct EncryptedObject {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) encrypted_data: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(super) key_id: String,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) encrypted_dek_source: Vec<u8>,
    #[prost(map = "string, bytes", tag = "4")]
    pub(super) annotations: HashMap<String, Vec<u8>>,
    #[prost(int32, tag = "5")]
    pub(super) encrypted_dek_source_type: i32,
}

impl EncryptedObject {
    /// Decodes a stored object.
    pub(super) fn read(stored: &[u8]) -> Result<Self, SealError> {
        let object = Self::decode(stored).map_err(|error| SealError::refused(error.to_string()))?;
        if object.encrypted_data.is_empty() {
            return Err(SealError::refused("encrypted data is empty"));
        }
        object.validate()?;
        Ok(object)
    }

    /// Implements upstream's `ValidateEncryptedObject`, without the check of the data.
    pub(super) fn validate(&self) -> Result<(), SealError> {
        let refused = |text: String| Err(SealError::refused(text));
        if ![AES_GCM_KEY, HKDF_SEED].contains(&self.encrypted_dek_source_type) {
            return refused(format!("unknown encryptedDEKSourceType: {}", self.encrypted_dek_source_type));
        }
        let source = "failed to validate encrypted DEK source";
        match self.encrypted_dek_source.len() {
            0 => return refused(format!("{source}: encrypted DEK source is empty")),
            length if length > MAX_WRAPPED_KEY => {
                return refused(format!(
                    "{source}: encrypted DEK source is {length} bytes, which exceeds the max size of {MAX_WRAPPED_KEY}"
                ));
            }
            _ => {}
        }
        validate_key_id(&self.key_id)
            .map_err(|reason| SealError::refused(format!("failed to validate key id: {reason}")))?;
        self.validate_annotations()
            .map_err(|reason| SealError::refused(format!("failed to validate annotations: {reason}")))
    }

    fn validate_annotations(&self) -> Result<(), String> {
        for name in self.annotations.keys() {
            let not_qualified = "should be a domain with at least two segments separated by dots".to_owned();
            let error = dns1123_subdomain(name).pop().or((!name.contains('.')).then_some(not_qualified));
            if let Some(reason) = error {
                return Err(format!("annotations: Invalid value: {name:?}: {reason}"));
            }
        }
        let total: usize = self.annotations.iter().map(|(name, value)| name.len() + value.len()).sum();
        if total > MAX_ANNOTATIONS {
            return Err(format!(
                "total size of annotations is {total}, which exceeds the max size of {MAX_ANNOTATIONS}"
            ));
        }
        Ok(())
    }

    /// Returns the wrapped key for the service to unwrap.
    pub(super) fn wrapped_key(&self) -> WrappedKey {
        WrappedKey {
            ciphertext: self.encrypted_dek_source.clone(),
            key_id: self.key_id.clone(),
            annotations: self.annotations.clone(),
        }
    }

    /// Returns the identity of the key: a digest of all fields except the data.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let mut text = Vec::new();
        let mut part = |bytes: &[u8]| {
            text.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            text.extend_from_slice(bytes);
        };
        part(&self.encrypted_dek_source_type.to_be_bytes());
        part(&self.encrypted_dek_source);
        part(self.key_id.as_bytes());
        let mut annotations: Vec<_> = self.annotations.iter().collect();
        annotations.sort();
        for (name, value) in annotations {
            part(name.as_bytes());
            part(value);
        }
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(digest(&SHA256, &text).as_ref());
        fingerprint
    }
}

pub(super) type Fingerprint = [u8; 32];

/// Implements upstream's `ValidateKeyID`.
pub(super) fn validate_key_id(key_id: &str) -> Result<(), String> {
    match key_id.len() {
        0 => Err("keyID is empty".to_owned()),
        length if length > MAX_KEY_ID => {
            Err(format!("keyID is {length} bytes, which exceeds the max size of {MAX_KEY_ID}"))
        }
        _ => Ok(()),
    }
}

/// Returns the digest of a key ID for display (upstream's `GetHashIfNotEmpty`).
pub(super) fn key_id_digest(key_id: &str) -> String {
    if key_id.is_empty() {
        return String::new();
    }
    let digest = digest(&SHA256, key_id.as_bytes());
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
