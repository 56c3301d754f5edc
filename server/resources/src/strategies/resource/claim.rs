//! Spec of a claim: requests for devices, constraints and configuration.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object, names};

use super::{naming, shared_fields};
use portico_validation::Errors;
use portico_validation::checks;

const FIRST_AVAILABLE_MAX: usize = 8;
const ONE_OF: &str = "exactly one of `exactly` or `firstAvailable` is required";
const NO_REFERENCE: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
const ONE_ATTRIBUTE: &str =
    "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";

/// Sets defaults that depend on other fields, in the claim at `devices`.
pub(super) fn default(object: &mut Object, devices: &[&str]) {
    object.edit(devices, |devices| {
        devices.edit_each(&["requests"], |request| {
            request.edit(&["exactly"], count);
            request.edit_each(&["firstAvailable"], count);
        });
    });
}

fn count(request: &mut Object) {
    let exact = request.at(&["allocationMode"]).str() == "ExactCount";
    if exact && request.at(&["count"]).i64().unwrap_or(0) == 0 {
        request.set(&["count"], 1);
    }
}

/// Returns the names to which constraints and configuration can refer: `request` and `request/subrequest`.
pub(super) fn references(devices: &Cursor<'_>) -> HashSet<String> {
    let mut names = HashSet::new();
    for request in devices.field("requests").items() {
        let name = request.field("name").str();
        names.insert(name.to_owned());
        for sub in request.field("firstAvailable").items() {
            names.insert(format!("{name}/{}", sub.field("name").str()));
        }
    }
    names
}

/// Validates the devices of a claim.
pub(super) fn validate(devices: &Cursor<'_>, errors: &mut Errors) {
    let (requests, constraints, config) =
        (devices.field("requests"), devices.field("constraints"), devices.field("config"));
    if checks::max_items(&requests, shared_fields::LIST_MAX, errors) {
        let mut seen = HashSet::new();
        for at in requests.items() {
            validate_request(&at, errors);
            check_unique_name(&mut seen, &at, errors);
        }
    }
    let request_names = references(devices);
    if checks::max_items(&constraints, shared_fields::LIST_MAX, errors) {
        constraints.items().for_each(|at| validate_constraint(&at, &request_names, errors));
    }
    if checks::max_items(&config, shared_fields::LIST_MAX, errors) {
        for at in config.items() {
            validate_references(&at.field("requests"), &request_names, errors);
            shared_fields::validate_opaque(&at, errors);
        }
    }
}

/// Reports an item whose name an earlier item has.
fn check_unique_name<'a>(seen: &mut HashSet<&'a str>, item: &Cursor<'a>, errors: &mut Errors) {
    let name = item.field("name");
    if !seen.insert(name.str()) {
        errors.push(Error::duplicate(&item.path(), name.str()));
    }
}

fn validate_request(request: &Cursor<'_>, errors: &mut Errors) {
    naming::validate_label(&request.field("name"), errors);
    let (exactly, first) = (request.field("exactly"), request.field("firstAvailable"));
    match (exactly.is_present(), !first.is_empty()) {
        (true, true) => {
            let text = format!("{ONE_OF}, but multiple fields are set");
            errors.push(Error::invalid_printed(&request.path(), "null", &text));
        }
        (false, false) => errors.push(request.required(ONE_OF)),
        (true, false) => validate_device_request(&exactly, errors),
        (false, true) => {
            if checks::max_items(&first, FIRST_AVAILABLE_MAX, errors) {
                let mut seen = HashSet::new();
                for sub in first.items() {
                    naming::validate_label(&sub.field("name"), errors);
                    validate_device_request(&sub, errors);
                    check_unique_name(&mut seen, &sub, errors);
                }
            }
        }
    }
}

fn validate_device_request(request: &Cursor<'_>, errors: &mut Errors) {
    checks::required(&request.field("deviceClassName"), names::dns1123_subdomain, errors);
    shared_fields::validate_selectors(&request.field("selectors"), errors);
    let (mode, count) = (request.field("allocationMode"), request.field("count"));
    let number = count.i64().unwrap_or(0);
    match mode.str() {
        "All" if number != 0 => {
            errors.push(count.invalid("must not be specified when allocationMode is 'All'"));
        }
        "All" => {}
        "ExactCount" if number <= 0 => {
            errors.push(Error::invalid(&count.path(), number, "must be greater than zero"));
        }
        "ExactCount" => {}
        _ => errors.push(mode.not_supported(&["All", "ExactCount"])),
    }
    shared_fields::validate_tolerations(&request.field("tolerations"), errors);
}

fn validate_constraint(constraint: &Cursor<'_>, request_names: &HashSet<String>, errors: &mut Errors) {
    validate_references(&constraint.field("requests"), request_names, errors);
    let (match_attribute, distinct_attribute) =
        (constraint.field("matchAttribute"), constraint.field("distinctAttribute"));
    if match_attribute.is_present() {
        naming::validate_full_attribute(&match_attribute, errors);
    } else if distinct_attribute.is_present() {
        naming::validate_full_attribute(&distinct_attribute, errors);
    } else {
        errors.push(constraint.required(ONE_ATTRIBUTE));
    }
}

/// Validates a list of references to requests: each request must exist, and references must be unique.
pub(super) fn validate_references(list: &Cursor<'_>, request_names: &HashSet<String>, errors: &mut Errors) {
    if !checks::max_items(list, shared_fields::LIST_MAX, errors) {
        return;
    }
    let mut seen = HashSet::new();
    for item in list.items() {
        validate_reference(&item, request_names, errors);
        checks::unique(&mut seen, &item, errors);
    }
}

/// Validates a reference to a request.
pub(super) fn validate_reference(at: &Cursor<'_>, request_names: &HashSet<String>, errors: &mut Errors) {
    let parts: Vec<&str> = at.str().split('/').collect();
    if parts.len() <= 2 {
        for part in parts {
            errors.extend(names::to_field_errors(&at.path(), part, portico_validation::values::label(part)));
        }
    }
    if !request_names.contains(at.str()) {
        errors.push(at.invalid(NO_REFERENCE));
    }
}

/// Returns an error for each request with admin access, which ignores other users of a device.
pub(super) fn admin_access(devices: &Cursor<'_>) -> Vec<Error> {
    let requests = devices.field("requests");
    let asking = requests.items().filter(|request| request.field("exactly").field("adminAccess").bool());
    let text = "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace";
    asking.map(|request| request.field("adminAccess").forbidden(text)).collect()
}
