//! `status.storedVersions`: every version that objects were ever stored in (upstream's strategy `PrepareForCreate`, `PrepareForUpdate` and its validation).

use std::collections::HashMap;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use super::layout::Layout;
use portico_registry::definition::storage_version;
use portico_validation::Errors;

const PATH: [&str; 2] = ["status", "storedVersions"];

/// Adds the storage version, the first one where there are several.
pub(super) fn record(definition: &mut Object) {
    let Some(name) = storage_version(definition) else { return };
    if !definition.at(&PATH).items().any(|stored| stored.str() == name) {
        definition.push(&PATH, name);
    }
}

/// Validates them against the versions that there are.
pub(super) fn validate(definition: &Object, layout: &Layout<'_>, errors: &mut Errors) {
    let stored = definition.at(&PATH);
    if stored.is_empty() {
        errors.push(stored.invalid_as("null", "must have at least one stored version"));
        return;
    }
    let mut left: HashMap<&str, Cursor<'_>> = stored.items().map(|at| (at.str(), at)).collect();
    for version in &layout.versions {
        let name = version.field("name");
        if left.remove(name.str()).is_none()
            && version.field("storage").bool()
            && !stored.items().any(|at| at.str() == name.str())
        {
            errors.push(stored.invalid(&format!("must have the storage version {}", name.str())));
        }
    }
    let gone = stored.items().filter(|at| left.get(at.str()).is_some_and(|last| last.path() == at.path()));
    errors.extend(gone.map(|at| missing(&at)));
}

fn missing(stored: &Cursor<'_>) -> Error {
    let name = stored.str();
    stored.invalid(&format!(
        "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
    ))
}
