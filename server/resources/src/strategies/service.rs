//! Service: addresses and node ports out of bounded pools, families, and rules about their changes.

mod addresses;
mod allocation;
mod carry;
mod cells;
mod defaults;
mod families;
mod fault;
mod node_ports;
mod transitions;
mod validate;
mod view;
mod warnings;

use portico_machinery::Object;
use portico_machinery::table::Cell;

pub(crate) use allocation::Allocation;
use portico_registry::{DecodeStrategy, Moment, Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;

pub(crate) struct Service;

impl DecodeStrategy for Service {
    fn default(&self, object: &mut Object, _moment: Moment) {
        defaults::set(object);
    }
}

impl Strategy for Service {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate::service(new, &[], errors);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: Moment) {
        carry::wipe(new, old);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        transitions::update(new, old, errors);
        let known: Vec<&str> = view::View::of(old).addresses();
        validate::service(new, &known, errors);
    }

    /// Upstream stores the policy of a name without addresses and never shows it.
    fn canonicalize(&self, new: &mut Object) -> bool {
        let is_name = new.str_at("spec.type") == "ExternalName";
        is_name && new.remove(&["spec", "internalTrafficPolicy"]).is_some()
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        warnings::of(new)
    }
}

impl SubresourceStrategy for Service {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        validate::status(new, errors);
    }

    fn status_warnings(&self, new: &Object, _old: &Object) -> Vec<String> {
        warnings::of_status(new)
    }
}

impl TableStrategy for Service {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        Cell::text(cells::cell(function, object))
    }
}
