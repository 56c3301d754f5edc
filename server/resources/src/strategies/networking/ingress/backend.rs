//! Validation of a backend of an Ingress: port of a Service, or another resource.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use portico_validation::Errors;
use portico_validation::{checks, values};

/// Validates one backend.
pub(super) fn validate_backend(backend: &Cursor<'_>, errors: &mut Errors) {
    let (service, resource) = (backend.field("service"), backend.field("resource"));
    match (resource.is_present(), service.is_present()) {
        (true, true) => {
            errors.push(Error::invalid(&backend.path(), "", "cannot set both resource and service backends"));
        }
        (true, false) => validate_reference(&resource, errors),
        (false, false) => {
            errors.push(Error::invalid(&backend.path(), "", "resource or service backend is required"));
        }
        (false, true) => validate_service_backend(backend, &service, errors),
    }
}

fn validate_reference(resource: &Cursor<'_>, errors: &mut Errors) {
    let group = resource.field("apiGroup");
    if group.is_present() {
        checks::matches_rule(&group, names::dns1123_subdomain, errors);
    }
    checks::required(&resource.field("kind"), names::path_segment, errors);
    checks::required(&resource.field("name"), names::path_segment, errors);
}

fn validate_service_backend(backend: &Cursor<'_>, service: &Cursor<'_>, errors: &mut Errors) {
    checks::required(&service.field("name"), values::label, errors);
    let (name, number) = (service.field("port").field("name"), service.field("port").field("number"));
    match (name.str(), number.i64().unwrap_or(0)) {
        ("", 0) => errors.push(backend.required("port name or number is required")),
        ("", _) => values::port(&number, errors),
        (_, 0) => errors.extend(values::port_name(name.str()).iter().map(|m| name.invalid(m))),
        _ => errors.push(Error::invalid(&backend.path(), "", "cannot set both port name & port number")),
    }
}
