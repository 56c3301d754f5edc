//! What drivers, pools, devices, attributes and requests may be called.

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, names};

use portico_validation::Errors;
use portico_validation::{checks, values};

const POOL_MAX: usize = 253;
const DOMAIN_MAX: usize = 63;
const IDENTIFIER_MAX: usize = 32;
const IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
const FULLY_QUALIFIED: &str = "a fully qualified name must be a domain and a name separated by a slash";

/// A driver's name.
pub(super) fn driver(at: &Cursor<'_>, errors: &mut Errors) {
    values::driver_name(at, errors);
}

/// A pool's name: subdomains joined by slashes.
pub(super) fn pool(at: &Cursor<'_>, errors: &mut Errors) {
    if at.str().is_empty() {
        errors.push(at.required(""));
        return;
    }
    checks::no_longer(at, POOL_MAX, errors);
    for part in at.str().split('/') {
        errors.extend(names::errors(&at.path(), part, names::dns1123_subdomain(part)));
    }
}

/// A name of a device, a request, a counter.
pub(super) fn label(at: &Cursor<'_>, errors: &mut Errors) {
    checks::follows(at, values::label, errors);
}

/// Labels that are keys of a map; diagnostics stand at the map.
pub(super) fn label_keys(map: &Cursor<'_>, errors: &mut Errors) {
    for (key, _) in map.entries() {
        errors.extend(names::errors(&map.path(), key, values::label(key)));
    }
}

/// `[domain/]id`, or, as upstream has it, anything with more than one slash; diagnostics stand where the cursor does.
pub(super) fn attribute(at: &Cursor<'_>, name: &str, errors: &mut Errors) {
    let path = at.path();
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [id] => identifier(&path, id, errors),
        [domain, id] => {
            if domain.is_empty() {
                errors.push(Error::invalid(&path, "", "the domain must not be empty"));
            } else {
                if domain.len() > DOMAIN_MAX {
                    errors.push(Error::too_long(&path, DOMAIN_MAX));
                }
                errors.extend(names::errors(&path, domain, names::dns1123_subdomain(&domain.to_lowercase())));
            }
            if id.is_empty() {
                errors.push(Error::invalid(&path, "", "the name must not be empty"));
            } else {
                identifier(&path, id, errors);
            }
        }
        _ => {}
    }
}

/// A name as C has them.
fn identifier(path: &Path, id: &str, errors: &mut Errors) {
    if id.len() > IDENTIFIER_MAX {
        errors.push(Error::too_long(path, IDENTIFIER_MAX));
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if id.is_empty() || id.starts_with(|c: char| c.is_ascii_digit()) || !id.chars().all(legal) {
        errors.push(Error::invalid(path, id, IDENTIFIER));
    }
}

/// An attribute's name that must have a domain.
pub(super) fn full_attribute(at: &Cursor<'_>, errors: &mut Errors) {
    attribute(at, at.str(), errors);
    if !at.str().contains('/') {
        errors.push(at.invalid(FULLY_QUALIFIED));
    }
}
