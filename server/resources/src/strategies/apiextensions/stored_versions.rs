//! `status.storedVersions`: versions in which objects may be stored (upstream's `PrepareForCreate`, `PrepareForUpdate` and
//! validation).

use std::collections::HashMap;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use super::internal_definition::InternalDefinition;
use portico_registry::definition::storage_version;
use portico_validation::Errors;

const PATH: [&str; 2] = ["status", "storedVersions"];

/// Adds the storage version. If several versions are marked, the first one counts.
pub(super) fn record(definition: &mut Object) {
    let Some(name) = storage_version(definition) else { return };
    if !definition.at(&PATH).items().any(|stored| stored.str() == name) {
        definition.push(&PATH, name);
    }
}

/// Validates the stored versions against the versions of the definition.
pub(super) fn validate(definition: &Object, layout: &InternalDefinition<'_>, errors: &mut Errors) {
    let stored = definition.at(&PATH);
    if stored.is_empty() {
        errors.push(stored.invalid_as("null", "must have at least one stored version"));
        return;
    }
    let mut unmatched: HashMap<&str, Cursor<'_>> = stored.items().map(|at| (at.str(), at)).collect();
    for version in &layout.versions {
        let name = version.field("name");
        if unmatched.remove(name.str()).is_none()
            && version.field("storage").bool()
            && !stored.items().any(|at| at.str() == name.str())
        {
            errors.push(stored.invalid(&format!("must have the storage version {}", name.str())));
        }
    }
    let removed =
        stored.items().filter(|at| unmatched.get(at.str()).is_some_and(|last| last.path() == at.path()));
    errors.extend(removed.map(|at| missing_error(&at)));
}

fn missing_error(stored_version: &Cursor<'_>) -> Error {
    let name = stored_version.str();
    stored_version.invalid(&format!(
        "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
    ))
}
