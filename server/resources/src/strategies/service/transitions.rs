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
    let external = now.is_external_name() || then.is_external_name();
    let headless = now.is_headless() && then.is_headless();
    if !external && !headless {
        kept(
            &now.field("clusterIPs"),
            &then.field("clusterIPs"),
            "primary clusterIP can not be unset",
            errors,
        );
        kept(
            &now.field("ipFamilies"),
            &then.field("ipFamilies"),
            "primary ipFamily can not be unset",
            errors,
        );
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

/// The first entry stays; others stay as long as there are as many.
fn kept(now: &Cursor<'_>, then: &Cursor<'_>, unset: &str, errors: &mut Errors) {
    let mut complain = |at: usize, text: &str| {
        errors.push(Error::invalid_printed(&now.path().index(at), &now.printed(), text));
    };
    if now.is_empty() && !then.is_empty() {
        complain(0, unset);
        return;
    }
    let compared = if now.len() == then.len() { now.len() } else { 1 };
    for (at, (new, old)) in now.items().zip(then.items()).enumerate().take(compared) {
        if new.str() != old.str() {
            complain(at, ONCE);
        }
    }
}
