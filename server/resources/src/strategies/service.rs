//! Service: allocation of addresses and node ports, address families, and validation.

mod addresses;
mod allocation;
mod allocation_failure;
mod carry_over;
mod cells;
mod defaults;
mod families;
mod immutable_fields;
mod node_ports;
mod service_spec;
mod validate;
mod warnings;

use portico_machinery::Object;
use portico_machinery::table::Cell;

pub(crate) use allocation::AllocationHooks;
use portico_registry::{DecodeStrategy, RequestTime, Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;

pub(crate) struct Service;

impl DecodeStrategy for Service {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        defaults::set(object);
    }
}

impl Strategy for Service {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate::validate_service(new, &[], errors);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: RequestTime) {
        carry_over::drop_unused_fields(new, old);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        immutable_fields::update(new, old, errors);
        let old_addresses: Vec<&str> = service_spec::ServiceSpec::of(old).addresses();
        validate::validate_service(new, &old_addresses, errors);
    }

    /// Removes `internalTrafficPolicy` of an ExternalName Service. Upstream stores the field and never returns it.
    fn canonicalize(&self, new: &mut Object) -> bool {
        let is_name = new.str_at("spec.type") == "ExternalName";
        is_name && new.remove(&["spec", "internalTrafficPolicy"]).is_some()
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        warnings::service_warnings(new)
    }
}

impl SubresourceStrategy for Service {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        validate::validate_status(new, errors);
    }

    fn status_warnings(&self, new: &Object, _old: &Object) -> Vec<String> {
        warnings::status_warnings(new)
    }
}

impl TableStrategy for Service {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        Cell::text(cells::cell(function, object))
    }
}
