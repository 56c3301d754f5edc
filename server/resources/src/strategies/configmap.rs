//! ConfigMap: keys, size, immutability. Secret uses the same rules.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use portico_registry::Strategy;
use portico_validation::Errors;
use portico_validation::values;

/// Maximum total size of all values in bytes.
const SIZE_MAX: usize = 1_048_576;

pub(crate) struct ConfigMap;

impl Strategy for ConfigMap {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let (data, binary) = (new.at(&["data"]), new.at(&["binaryData"]));
        let mut size = 0;
        for (key, value) in data.entries() {
            validate_key(key, &value, errors);
            if binary.field(key).is_present() {
                errors.push(Error::invalid(&value.path(), key, "duplicate of key present in binaryData"));
            }
            size += value.str().len();
        }
        for (key, value) in binary.entries() {
            validate_key(key, &value, errors);
            size += values::decoded_length(value.str());
        }
        if size > SIZE_MAX {
            // As in upstream's ValidateConfigMap, the path has no name and prints as `[]`.
            errors.push(Error::too_long(&"[]".into(), SIZE_MAX));
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate_immutable(new, old, &["data", "binaryData"], errors);
        self.validate(new, errors);
    }
}

pub(super) fn validate_key(key: &str, value: &Cursor<'_>, errors: &mut Errors) {
    errors.extend(values::config_key(key).iter().map(|m| Error::invalid(&value.path(), key, m)));
}

/// Checks that `immutable: true` is not unset and that `fields` are unchanged, once `immutable: true` is stored.
pub(super) fn validate_immutable(new: &Object, old: &Object, fields: &[&str], errors: &mut Errors) {
    const TEXT: &str = "field is immutable when `immutable` is set";
    if !old.at(&["immutable"]).bool() {
        return;
    }
    if !new.at(&["immutable"]).bool() {
        errors.push(new.at(&["immutable"]).forbidden(TEXT));
    }
    for field in fields {
        let (new, old) = (new.at(&[field]), old.at(&[field]));
        if !(new.same_as(&old) || (new.is_empty() && old.is_empty())) {
            errors.push(new.forbidden(TEXT));
        }
    }
}

/// Validates the values of a map of bytes.
pub(super) fn validate_bytes(data: &Cursor<'_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in data.entries() {
        validate_key(key, &value, errors);
        size += values::decoded_length(value.str());
    }
    if size > SIZE_MAX {
        errors.push(Error::too_long(&data.path(), SIZE_MAX));
    }
}
