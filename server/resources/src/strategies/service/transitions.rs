//! What of a Service may not change: addresses and families once given, the class of a load balancer, its health port.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use super::view::View;
use portico_validation::Errors;
use portico_validation::checks;

const ONCE: &str = "may not change once set";

/// Validates a change.
pub(super) fn update(new: &Object, old: &Object, errors: &mut Errors) {
    let (now, then) = (View::of(new), View::of(old));
    let named = now.is_external_name() || then.is_external_name();
    let (headless, both) = (now.is_headless() || then.is_headless(), now.is_headless() && then.is_headless());
    if !named && !both {
        addresses(&now.field("clusterIPs"), &then.field("clusterIPs"), errors);
    }
    if !named && !headless {
        families(&now, &then, errors);
    }
    let class = now.field("loadBalancerClass");
    let balanced = now.kind() == "LoadBalancer" && then.kind() == "LoadBalancer";
    if balanced && !checks::same(&class, &then.field("loadBalancerClass")) {
        errors.push(class.invalid(ONCE));
    }
    let health = now.field("healthCheckNodePort");
    if now.needs_health_port() && then.needs_health_port() && now.health_port() != then.health_port() {
        errors.push(health.forbidden(checks::IMMUTABLE));
    }
}

/// The first address stays; others stay as long as there are as many.
fn addresses<'a>(now: &Cursor<'a>, then: &Cursor<'a>, errors: &mut Errors) {
    if now.is_empty() && !then.is_empty() {
        errors.push(at(now, 0, now, "primary clusterIP can not be unset"));
    }
    for index in changed(now, then) {
        errors.push(at(now, index, now, ONCE));
    }
}

/// As with addresses, whose list upstream shows where there are not as many families as before.
fn families(now: &View<'_>, then: &View<'_>, errors: &mut Errors) {
    let (list, before, addresses) =
        (now.field("ipFamilies"), then.field("ipFamilies"), now.field("clusterIPs"));
    if list.len() < before.len() && addresses.is_empty() {
        errors.push(at(&list, 0, &list, "primary ipFamily can not be unset"));
    }
    let shown = if list.len() == before.len() { &list } else { &addresses };
    for _ in changed(&list, &before) {
        errors.push(at(&list, 0, shown, ONCE));
    }
}

/// Where two lists differ: anywhere when they are as long, else at the beginning alone.
fn changed<'a>(now: &Cursor<'a>, then: &Cursor<'a>) -> Vec<usize> {
    let compared = if now.len() == then.len() { now.len() } else { 1 };
    let pairs = now.items().zip(then.items()).enumerate().take(compared);
    pairs.filter(|(_, (new, old))| new.str() != old.str()).map(|(index, _)| index).collect()
}

/// An error at an entry of a list that shows the whole list.
fn at(list: &Cursor<'_>, index: usize, shown: &Cursor<'_>, text: &str) -> Error {
    let printed = if shown.is_empty() { "null".to_owned() } else { shown.printed() };
    Error::invalid_printed(&list.path().index(index), &printed, text)
}
