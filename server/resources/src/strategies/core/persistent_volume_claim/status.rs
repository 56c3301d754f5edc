//! Validation of the status of a claim.

use portico_machinery::field::{Error, ErrorType, Path};
use portico_machinery::{Cursor, Object, names};

use portico_validation::Errors;

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
        validate_quantity(&value, errors);
    }
    let states = claim.at(&["status", "allocatedResourceStatuses"]);
    let path = states.path();
    for (name, state) in states.entries() {
        validate_resource(name, &path, errors);
        if !STATES.contains(&state.str()) {
            // Upstream prints the key although the value is invalid.
            errors.push(unsupported_error(&path, name, &STATES));
        }
    }
    let list = claim.at(&["status", "allocatedResources"]);
    for (name, value) in list.entries() {
        // As upstream, an invalid name is reported at the path of the list, and the amount is then not validated.
        let before = errors.len();
        validate_resource(name, &list.path(), errors);
        if errors.len() == before {
            validate_quantity(&value, errors);
        }
    }
}

fn validate_quantity(value: &Cursor<'_>, errors: &mut Errors) {
    let amount = value.quantity().unwrap_or_default();
    if amount.is_negative() {
        errors.push(Error::invalid(&value.path(), amount.value(), "must be a valid resource quantity"));
    }
}

/// Validates a qualified resource name. Without a domain, only `storage` is allowed.
fn validate_resource(name: &str, path: &Path, errors: &mut Errors) {
    let diagnostics = names::qualified_name(name);
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    if !diagnostics.is_empty() {
        errors.extend(names::to_field_errors(path, name, diagnostics));
    } else if is_native && name != "storage" {
        errors.push(unsupported_error(path, name, &["storage"]));
    }
}

fn unsupported_error(path: &Path, value: &str, supported: &[&str]) -> Error {
    let quoted: Vec<String> = supported.iter().map(|item| format!("{item:?}")).collect();
    let body = format!("Unsupported value: {value:?}: supported values: {}", quoted.join(", "));
    Error { kind: ErrorType::NotSupported, path: path.clone(), body }
}
