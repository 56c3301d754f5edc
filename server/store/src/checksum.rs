//! Checksums of stored states. They detect damage of the disk that produces a readable value.

use crc32fast::Hasher;

use crate::codec;
use crate::copy::CopyError;
use crate::key::Key;
use crate::seal::StoredValue;

/// Returns the checksum of a state: of its key, revision and JSON.
fn compute(key: &Key, revision: i64, json: &[u8]) -> i64 {
    let mut hasher = Hasher::new();
    for part in [&*key.resource().group, &*key.resource().resource, key.path()] {
        hasher.update(part.as_bytes());
        // No text contains this byte: it is not valid UTF-8.
        hasher.update(&[0xff]);
    }
    hasher.update(&revision.to_be_bytes());
    hasher.update(json);
    i64::from(hasher.finalize())
}

/// Returns the checksum of a state for the database; `None` for a sealed value. The seal authenticates the value, and a
/// checksum would have to be replaced at each change of keys, also by programs that do not know checksums.
pub(crate) fn compute_checksum(key: &Key, revision: i64, stored: &[u8]) -> Option<i64> {
    match codec::decode(stored) {
        Ok(StoredValue::Plain(json)) => Some(compute(key, revision, json)),
        _ => None,
    }
}

/// Compares a state with its checksum, if it has one. Returns the reason why the state cannot be read.
pub(crate) fn verify(
    key: &Key,
    revision: i64,
    value: &StoredValue<'_>,
    checksum: Option<i64>,
) -> Result<(), &'static str> {
    match (value, checksum) {
        (StoredValue::Plain(json), Some(checksum)) if compute(key, revision, json) != checksum => {
            Err("checksum mismatch")
        }
        _ => Ok(()),
    }
}

/// Verifies a state during a copy. Bytes that are not a value are copied unchanged.
pub(crate) fn verify_copied(
    key: &Key,
    revision: i64,
    stored: &[u8],
    checksum: Option<i64>,
) -> Result<(), CopyError> {
    let Ok(value) = codec::decode(stored) else { return Ok(()) };
    verify(key, revision, &value, checksum)
        .map_err(|reason| CopyError::Unreadable(format!("{key}: {reason}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Resource;

    #[test]
    fn changing_any_bit_of_key_revision_or_value_changes_the_checksum() {
        let key = |name: &str| Key::new(&Resource::new("apps", "deployments"), "a", name);
        let json = br#"{"metadata":{"name":"b"},"data":{"text":"some text"}}"#;
        let stored = codec::encode(json);
        let checksum = compute_checksum(&key("b"), 7, &stored);
        let is_right = |key: &Key, revision: i64, json: &[u8]| {
            verify(key, revision, &StoredValue::Plain(json), checksum).is_ok()
        };
        assert!(is_right(&key("b"), 7, json));
        assert!(!is_right(&key("c"), 7, json));
        assert!(!is_right(&Key::new(&Resource::new("", "deployments.apps"), "a", "b"), 7, json));
        assert!(!is_right(&key("b"), 6, json));
        for bit in 0..json.len() * 8 {
            let mut damaged = json.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_right(&key("b"), 7, &damaged), "{bit}");
        }
    }

    #[test]
    fn sealed_values_and_values_of_older_programs_have_no_checksum() {
        let key = Key::new(&Resource::new("", "secrets"), "a", "b");
        assert_eq!(compute_checksum(&key, 7, &codec::encode_sealed(b"k8s:enc:")), None);
        assert_eq!(verify(&key, 7, &StoredValue::Plain(b"{}"), None), Ok(()));
        assert_eq!(verify(&key, 7, &StoredValue::Sealed(b"k8s:enc:"), Some(1)), Ok(()));
    }
}
