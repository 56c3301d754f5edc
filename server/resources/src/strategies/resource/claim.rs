//! The spec of a claim: requests for devices, constraints between them, configuration for them.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object, names};

use super::{names_of, parts};
use portico_validation::Errors;
use portico_validation::checks;

const FIRST_AVAILABLE_MAX: usize = 8;
const ONE_OF: &str = "exactly one of `exactly` or `firstAvailable` is required";
const NO_REFERENCE: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
const ONE_ATTRIBUTE: &str =
    "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";

/// Sets what depends on other fields, in the claim under this path.
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

/// The names that others may refer to: requests, and `request/subrequest`.
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
    if checks::at_most(&requests, parts::LIST_MAX, errors) {
        let mut seen = HashSet::new();
        for at in requests.items() {
            request(&at, errors);
            duplicate(&mut seen, &at, errors);
        }
    }
    let known = references(devices);
    if checks::at_most(&constraints, parts::LIST_MAX, errors) {
        constraints.items().for_each(|at| constraint(&at, &known, errors));
    }
    if checks::at_most(&config, parts::LIST_MAX, errors) {
        for at in config.items() {
            refers(&at.field("requests"), &known, errors);
            parts::opaque(&at, errors);
        }
    }
}

/// A list by name: the second of a name is a duplicate, reported at the element.
fn duplicate<'a>(seen: &mut HashSet<&'a str>, item: &Cursor<'a>, errors: &mut Errors) {
    let name = item.field("name");
    if !seen.insert(name.str()) {
        errors.push(Error::duplicate(&item.path(), name.str()));
    }
}

fn request(request: &Cursor<'_>, errors: &mut Errors) {
    names_of::label(&request.field("name"), errors);
    let (exactly, first) = (request.field("exactly"), request.field("firstAvailable"));
    match (exactly.is_present(), !first.is_empty()) {
        (true, true) => {
            let text = format!("{ONE_OF}, but multiple fields are set");
            errors.push(Error::invalid_printed(&request.path(), "null", &text));
        }
        (false, false) => errors.push(request.required(ONE_OF)),
        (true, false) => device_request(&exactly, errors),
        (false, true) => {
            if checks::at_most(&first, FIRST_AVAILABLE_MAX, errors) {
                let mut seen = HashSet::new();
                for sub in first.items() {
                    names_of::label(&sub.field("name"), errors);
                    device_request(&sub, errors);
                    duplicate(&mut seen, &sub, errors);
                }
            }
        }
    }
}

fn device_request(request: &Cursor<'_>, errors: &mut Errors) {
    checks::required(&request.field("deviceClassName"), names::dns1123_subdomain, errors);
    parts::selectors(&request.field("selectors"), errors);
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
    parts::tolerations(&request.field("tolerations"), errors);
}

fn constraint(constraint: &Cursor<'_>, known: &HashSet<String>, errors: &mut Errors) {
    refers(&constraint.field("requests"), known, errors);
    let (same, distinct) = (constraint.field("matchAttribute"), constraint.field("distinctAttribute"));
    if same.is_present() {
        names_of::full_attribute(&same, errors);
    } else if distinct.is_present() {
        names_of::full_attribute(&distinct, errors);
    } else {
        errors.push(constraint.required(ONE_ATTRIBUTE));
    }
}

/// References to requests: each is there, none twice.
pub(super) fn refers(list: &Cursor<'_>, known: &HashSet<String>, errors: &mut Errors) {
    if !checks::at_most(list, parts::LIST_MAX, errors) {
        return;
    }
    let mut seen = HashSet::new();
    for item in list.items() {
        refers_to(&item, known, errors);
        checks::unique(&mut seen, &item, errors);
    }
}

/// A reference to a request.
pub(super) fn refers_to(at: &Cursor<'_>, known: &HashSet<String>, errors: &mut Errors) {
    let parts: Vec<&str> = at.str().split('/').collect();
    if parts.len() <= 2 {
        for part in parts {
            errors.extend(names::errors(&at.path(), part, portico_validation::values::label(part)));
        }
    }
    if !known.contains(at.str()) {
        errors.push(at.invalid(NO_REFERENCE));
    }
}

/// Where a claim asks for devices in spite of who uses them.
pub(super) fn admin_access(devices: &Cursor<'_>) -> Vec<Error> {
    let requests = devices.field("requests");
    let asking = requests.items().filter(|request| request.field("exactly").field("adminAccess").bool());
    let text = "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace";
    asking.map(|request| request.field("adminAccess").forbidden(text)).collect()
}
