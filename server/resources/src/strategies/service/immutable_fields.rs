//! Fields of a Service that updates cannot change: allocated addresses, families, load balancer class and health check port.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use super::service_spec::ServiceSpec;
use portico_validation::Errors;
use portico_validation::checks;

const IMMUTABLE_ONCE_SET: &str = "may not change once set";

/// Validates an update.
pub(super) fn update(new: &Object, old: &Object, errors: &mut Errors) {
    let (new_spec, old_spec) = (ServiceSpec::of(new), ServiceSpec::of(old));
    let is_external = new_spec.is_external_name() || old_spec.is_external_name();
    let (headless, both) =
        (new_spec.is_headless() || old_spec.is_headless(), new_spec.is_headless() && old_spec.is_headless());
    if !is_external && !both {
        validate_addresses(&new_spec.field("clusterIPs"), &old_spec.field("clusterIPs"), errors);
    }
    if !is_external && !headless {
        validate_families(&new_spec, &old_spec, errors);
    }
    let class = new_spec.field("loadBalancerClass");
    let balanced = new_spec.kind() == "LoadBalancer" && old_spec.kind() == "LoadBalancer";
    if balanced && !checks::is_same(&class, &old_spec.field("loadBalancerClass")) {
        errors.push(class.invalid(IMMUTABLE_ONCE_SET));
    }
    let health = new_spec.field("healthCheckNodePort");
    if new_spec.needs_health_port()
        && old_spec.needs_health_port()
        && new_spec.health_port() != old_spec.health_port()
    {
        errors.push(health.forbidden(checks::IMMUTABLE));
    }
}

/// Checks that the first address is unchanged, and the others too if their number is unchanged.
fn validate_addresses<'a>(new_value: &Cursor<'a>, old_value: &Cursor<'a>, errors: &mut Errors) {
    if new_value.is_empty() && !old_value.is_empty() {
        errors.push(error_at_index(new_value, 0, new_value, "primary clusterIP can not be unset"));
    }
    for index in changed_indexes(new_value, old_value) {
        errors.push(error_at_index(new_value, index, new_value, IMMUTABLE_ONCE_SET));
    }
}

/// Checks that families are unchanged, with the rules for addresses. As upstream, the error prints the addresses if there are
/// fewer families than before.
fn validate_families(new_spec: &ServiceSpec<'_>, old_spec: &ServiceSpec<'_>, errors: &mut Errors) {
    let (list, before, addresses) =
        (new_spec.field("ipFamilies"), old_spec.field("ipFamilies"), new_spec.field("clusterIPs"));
    if list.len() < before.len() && addresses.is_empty() {
        errors.push(error_at_index(&list, 0, &list, "primary ipFamily can not be unset"));
    }
    let printed_value = if list.len() == before.len() { &list } else { &addresses };
    for _ in changed_indexes(&list, &before) {
        errors.push(error_at_index(&list, 0, printed_value, IMMUTABLE_ONCE_SET));
    }
}

/// Returns the indexes at which two lists differ: all if the lists have the same length, otherwise at most the first.
fn changed_indexes<'a>(new_value: &Cursor<'a>, old_value: &Cursor<'a>) -> Vec<usize> {
    let compared = if new_value.len() == old_value.len() { new_value.len() } else { 1 };
    let pairs = new_value.items().zip(old_value.items()).enumerate().take(compared);
    pairs.filter(|(_, (new, old))| new.str() != old.str()).map(|(index, _)| index).collect()
}

/// Error at an entry of a list that prints a whole list.
fn error_at_index(list: &Cursor<'_>, index: usize, value: &Cursor<'_>, text: &str) -> Error {
    let printed = if value.is_empty() { "null".to_owned() } else { value.printed() };
    Error::invalid_printed(&list.path().index(index), &printed, text)
}
