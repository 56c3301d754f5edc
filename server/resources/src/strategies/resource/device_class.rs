//! DeviceClass: name for a set of devices and their configuration. All fields are mutable.

use portico_machinery::{Object, names};

use super::shared_fields;
use portico_registry::Strategy;
use portico_validation::Errors;
use portico_validation::checks;

const NOT_EXTENDED: &str = "must be a valid extended resource name";

pub(crate) struct DeviceClass;

impl Strategy for DeviceClass {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        shared_fields::validate_selectors(&spec.field("selectors"), errors);
        let config = spec.field("config");
        if checks::max_items(&config, shared_fields::LIST_MAX, errors) {
            config.items().for_each(|at| shared_fields::validate_opaque(&at, errors));
        }
        let extended = spec.field("extendedResourceName");
        if extended.is_present() && !is_extended(extended.str()) {
            errors.push(extended.invalid(NOT_EXTENDED));
        }
    }
}

fn is_extended(name: &str) -> bool {
    let native = name.split_once('/').is_none_or(|(domain, _)| domain.ends_with("kubernetes.io"));
    !native && !name.starts_with("requests.") && names::qualified_name(&format!("requests.{name}")).is_empty()
}
