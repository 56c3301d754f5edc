//! DeviceClass: which devices, under which configuration, a name stands for. All of it may change.

use portico_machinery::{Object, names};

use super::parts;
use portico_registry::Strategy;
use portico_validation::Errors;
use portico_validation::checks;

const NOT_EXTENDED: &str = "must be a valid extended resource name";

/// See the module.
pub(crate) struct DeviceClass;

impl Strategy for DeviceClass {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        parts::selectors(&spec.field("selectors"), errors);
        let config = spec.field("config");
        if checks::at_most(&config, parts::LIST_MAX, errors) {
            config.items().for_each(|at| parts::opaque(&at, errors));
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
