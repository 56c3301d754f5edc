//! What is validated of a claim's status.

use portico_machinery::field::{Error, ErrorType, Path};
use portico_machinery::{Cursor, Object, names};

use portico_validation::Errors;
use portico_validation::checks;

const STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// Validates the status.
pub(super) fn validate(claim: &Object, errors: &mut Errors) {
    if claim.at(&["spec", "accessModes"]).is_empty() {
        errors.push(Error::required(&Path::new("Spec.accessModes".to_owned()), ""));
    }
    for (_, value) in claim.at(&["status", "capacity"]).entries() {
        valid_quantity(&value, errors);
    }
    for (name, state) in claim.at(&["status", "allocatedResourceStatuses"]).entries() {
        let path = state.path();
        resource(name, &path, errors);
        if !STATES.contains(&state.str()) {
            // Upstream prints the key where the value is wrong.
            errors.push(unsupported(&path, name, &STATES));
        }
    }
    for (name, value) in claim.at(&["status", "allocatedResources"]).entries() {
        resource(name, &value.path(), errors);
        let amount = value.quantity().unwrap_or_default();
        if amount.is_negative() {
            errors.push(Error::invalid(&value.path(), amount.to_string(), checks::NOT_NEGATIVE));
        }
    }
}

fn valid_quantity(value: &Cursor<'_>, errors: &mut Errors) {
    let amount = value.quantity().unwrap_or_default();
    if amount.is_negative() {
        errors.push(Error::invalid(&value.path(), amount.to_string(), "must be a valid resource quantity"));
    }
}

/// A qualified name; of upstream's own only `storage`.
fn resource(name: &str, path: &Path, errors: &mut Errors) {
    let diagnostics = names::qualified_name(name);
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    if !diagnostics.is_empty() {
        errors.extend(names::errors(path, name, diagnostics));
    } else if is_native && name != "storage" {
        errors.push(unsupported(path, name, &["storage"]));
    }
}

fn unsupported(path: &Path, value: &str, supported: &[&str]) -> Error {
    let quoted: Vec<String> = supported.iter().map(|word| format!("{word:?}")).collect();
    let body = format!("Unsupported value: {value:?}: supported values: {}", quoted.join(", "));
    Error { kind: ErrorType::NotSupported, path: path.clone(), body }
}
