//! APIService: rules V1 to V17, the Local condition, table cells, and annotations of backends.

use portico_machinery::annotations;
use portico_machinery::field::Error;
use portico_machinery::object::Printed;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object, names};

use portico_registry::condition::{self, Condition};
use portico_registry::{RequestTime, Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::values;

use super::backend_annotations;

const KIND: &str = "APIService";

pub(crate) struct ApiService;

impl Strategy for ApiService {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn prepare_create(&self, new: &mut Object, time: RequestTime) {
        if !new.at(&["spec", "service"]).is_present() {
            let message = "Local APIServices are always available";
            let local = Condition::new("Available", "True", "Local", message);
            condition::set(new, local, time.now);
        }
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        validate_names(new, &spec, errors);
        let (group, version) = (spec.field("group"), spec.field("version"));
        if group.str().is_empty() {
            if version.str() != "v1" {
                errors.push(group.required("only v1 may have an empty group and it better be legacy kube"));
            }
        } else {
            errors.extend(names::to_field_errors(
                &group.path(),
                group.str(),
                names::dns1123_subdomain(group.str()),
            ));
        }
        errors.extend(names::to_field_errors(
            &version.path(),
            version.str(),
            names::dns1035_label(version.str()),
        ));
        check_in_range(&spec.field("groupPriorityMinimum"), 20_000, errors);
        check_in_range(&spec.field("versionPriority"), 1_000, errors);
        validate_backend(&spec, errors);
        validate_annotations(new, errors);
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        backend_annotations::unknown_warnings(new, &annotations::keys(KIND))
    }
}

impl SubresourceStrategy for ApiService {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        for condition in new.at(&["status", "conditions"]).items() {
            let status = condition.field("status");
            if !matches!(status.str(), "True" | "False" | "Unknown") {
                errors.push(status.not_supported(&["False", "True", "Unknown"]));
            }
        }
    }
}

impl TableStrategy for ApiService {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        let service = object.at(&["spec", "service"]);
        match function {
            "apiservice-service" if !service.is_present() => Cell::text("Local"),
            "apiservice-service" => {
                Cell::text(format!("{}/{}", service.field("namespace").str(), service.field("name").str()))
            }
            "apiservice-available" => Cell::text(available(object)),
            _ => Cell::Null,
        }
    }
}

/// V2, V4: checks that the name is `VERSION.GROUP`.
fn validate_names(new: &Object, spec: &Cursor<'_>, errors: &mut Errors) {
    let required_name = format!("{}.{}", spec.field("version").str(), spec.field("group").str());
    for field in ["generateName", "name"] {
        let name = new.metadata().field(field);
        if !name.str().is_empty() && name.str() != required_name && names::path_segment(name.str()).is_empty()
        {
            let text = format!("must be `spec.version+\".\"+spec.group`: {}", required_name.printed());
            errors.push(name.invalid(&text));
        }
    }
}

/// V9, V10: checks a priority. The message of upstream is "less than", although the limit itself is accepted.
fn check_in_range(priority: &Cursor<'_>, limit: i64, errors: &mut Errors) {
    let value = priority.i64().unwrap_or(0);
    if value <= 0 || value > limit {
        let text = format!("must be positive and less than {limit}");
        errors.push(Error::invalid(&priority.path(), value, &text));
    }
}

/// V11 to V16: validates the fields of the backend.
fn validate_backend(spec: &Cursor<'_>, errors: &mut Errors) {
    let (bundle, insecure) = (spec.field("caBundle"), spec.field("insecureSkipTLSVerify"));
    let service = spec.field("service");
    let bundle_size = values::decoded_length(bundle.str());
    if !service.is_present() {
        if bundle_size > 0 {
            let size = format!("{bundle_size} bytes");
            let text = "local APIServices may not have a caBundle";
            errors.push(Error::invalid(&bundle.path(), size, text));
        }
        if insecure.bool() {
            errors.push(insecure.invalid("local APIServices may not have insecureSkipTLSVerify"));
        }
        return;
    }
    for field in ["namespace", "name"] {
        let cursor = service.field(field);
        if cursor.str().is_empty() {
            errors.push(cursor.required(""));
        }
    }
    let port = service.field("port");
    let number = port.i64().unwrap_or(0);
    if let Some(text) = values::port_number(number) {
        errors.push(Error::invalid(&port.path(), number, &format!("port is not valid: {text}")));
    }
    if insecure.bool() && bundle_size > 0 {
        errors.push(insecure.invalid("may not be true if caBundle is present"));
    }
}

/// Validates the annotations of Portico with addresses of backends.
fn validate_annotations(new: &Object, errors: &mut Errors) {
    let has_service = new.at(&["spec", "service"]).is_present();
    let needs = (!has_service).then_some("may only be set when spec.service is set");
    backend_annotations::validate(new, &annotations::keys(KIND), needs, errors);
}

/// Returns the status of the condition `Available`, with its reason unless the status is `True`.
fn available(object: &Object) -> String {
    let Some(condition) = condition::get(object, "Available") else { return "Unknown".to_owned() };
    match (condition.status.as_str(), condition.reason.as_str()) {
        ("True", _) => condition.status,
        (_, "") => condition.status,
        (status, reason) => format!("{status} ({reason})"),
    }
}
