//! Validation of the names of drivers, pools, devices, attributes and requests.

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, names};

use portico_validation::Errors;
use portico_validation::{checks, values};

const POOL_MAX: usize = 253;
const DOMAIN_MAX: usize = 63;
const IDENTIFIER_MAX: usize = 32;
const IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
const FULLY_QUALIFIED: &str = "a fully qualified name must be a domain and a name separated by a slash";

/// Validates the name of a driver.
pub(super) fn validate_driver(at: &Cursor<'_>, errors: &mut Errors) {
    values::driver_name(at, errors);
}

/// Validates the name of a pool: subdomains joined by slashes.
pub(super) fn validate_pool(at: &Cursor<'_>, errors: &mut Errors) {
    if at.str().is_empty() {
        errors.push(at.required(""));
        return;
    }
    checks::max_bytes(at, POOL_MAX, errors);
    for part in at.str().split('/') {
        errors.extend(names::to_field_errors(&at.path(), part, names::dns1123_subdomain(part)));
    }
}

/// Validates the name of a device, request or counter.
pub(super) fn validate_label(at: &Cursor<'_>, errors: &mut Errors) {
    checks::matches_rule(at, values::label, errors);
}

/// Validates labels that are keys of a map. Errors have the path of the map.
pub(super) fn validate_label_keys(map: &Cursor<'_>, errors: &mut Errors) {
    for (key, _) in map.entries() {
        errors.extend(names::to_field_errors(&map.path(), key, values::label(key)));
    }
}

/// Validates an attribute name of the form `[domain/]id`. As upstream, a name with more than one slash is accepted. Errors have
/// the path of the cursor.
pub(super) fn validate_attribute(at: &Cursor<'_>, name: &str, errors: &mut Errors) {
    let path = at.path();
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [id] => validate_identifier(&path, id, errors),
        [domain, id] => {
            if domain.is_empty() {
                errors.push(Error::invalid(&path, "", "the domain must not be empty"));
            } else {
                if domain.len() > DOMAIN_MAX {
                    errors.push(Error::too_long(&path, DOMAIN_MAX));
                }
                errors.extend(names::to_field_errors(
                    &path,
                    domain,
                    names::dns1123_subdomain(&domain.to_lowercase()),
                ));
            }
            if id.is_empty() {
                errors.push(Error::invalid(&path, "", "the name must not be empty"));
            } else {
                validate_identifier(&path, id, errors);
            }
        }
        _ => {}
    }
}

/// Validates a C identifier.
fn validate_identifier(path: &Path, id: &str, errors: &mut Errors) {
    if id.len() > IDENTIFIER_MAX {
        errors.push(Error::too_long(path, IDENTIFIER_MAX));
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if id.is_empty() || id.starts_with(|c: char| c.is_ascii_digit()) || !id.chars().all(legal) {
        errors.push(Error::invalid(path, id, IDENTIFIER));
    }
}

/// Validates an attribute name that must have a domain.
pub(super) fn validate_full_attribute(at: &Cursor<'_>, errors: &mut Errors) {
    validate_attribute(at, at.str(), errors);
    if !at.str().contains('/') {
        errors.push(at.invalid(FULLY_QUALIFIED));
    }
}
