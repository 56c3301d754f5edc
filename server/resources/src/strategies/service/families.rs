//! Address families of a Service: how many it wants, which, and whether the server has them.

use std::net::IpAddr;

use portico_machinery::Object;
use portico_machinery::field::Error;

use super::validate;
use super::view::View;
use crate::allocation::Family;
use portico_validation::Errors;
use portico_validation::checks;

const SINGLE: &str = "SingleStack";
const PREFER: &str = "PreferDualStack";
const REQUIRE: &str = "RequireDualStack";
const POLICY: [&str; 2] = ["spec", "ipFamilyPolicy"];
const FAMILIES: [&str; 2] = ["spec", "ipFamilies"];
const ADDRESSES: [&str; 2] = ["spec", "clusterIPs"];

/// Settles policy and families. The server has these families, the default one first. Errors are the only answer then.
pub(super) fn settle(new: &mut Object, old: Option<&Object>, configured: &[Family]) -> Errors {
    let mut errors = Vec::new();
    if View::of(new).is_external_name() || old.is_some_and(|old| stays_preferring(new, old)) {
        return errors;
    }
    default_policy(new, old);
    let known = old.map(|old| View::of(old).addresses()).unwrap_or_default();
    validate::addresses(new, &known, &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    if let Some(old) = old {
        shrink(new, old, &mut errors);
    }
    check_counts(new, &mut errors);
    infer(new, configured, &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    let spec = View::of(new);
    if spec.is_headless() && !spec.has_selector() {
        // Whoever fills in the endpoints may have both, whatever the server has.
        complete(new, configured, true);
        return errors;
    }
    check_configured(&spec, configured, &mut errors);
    if errors.is_empty() {
        complete(new, configured, configured.len() > 1);
    }
    errors
}

/// A Service that prefers two stacks and sets nothing new about it is not touched: the server's families may have changed.
pub(super) fn stays_preferring(new: &Object, old: &Object) -> bool {
    let (now, then) = (View::of(new), View::of(old));
    let prefers = |view: &View<'_>| matches!(view.policy(), "" | PREFER);
    let both_unset = now.policy().is_empty() && then.policy().is_empty();
    now.kind() == then.kind()
        && now.needs_address()
        && prefers(&now)
        && prefers(&then)
        && !both_unset
        && ["clusterIPs", "ipFamilies"].iter().all(|f| checks::same(&now.field(f), &then.field(f)))
}

fn default_policy(new: &mut Object, old: Option<&Object>) {
    if new.at(&POLICY).is_present() {
        return;
    }
    let spec = View::of(new);
    let free = spec.is_headless() && !spec.has_selector();
    let before = old.map(|old| View::of(old).policy()).filter(|policy| !policy.is_empty());
    let policy = before.unwrap_or(if free { REQUIRE } else { SINGLE });
    new.set(&POLICY, policy);
}

/// What an update with fewer addresses or families means.
fn shrink(new: &mut Object, old: &Object, errors: &mut Errors) {
    if new.at(&POLICY).str() == SINGLE {
        for list in [ADDRESSES, FAMILIES] {
            let first = new.at(&list).items().next().map(|item| item.str().to_owned());
            if new.at(&list).len() > 1 && checks::same(&new.at(&list), &old.at(&list)) {
                new.set(&list, first.into_iter().collect::<Vec<_>>());
            }
        }
        return;
    }
    let fewer = |list: &[&str]| {
        let (now, then) = (new.at(list), old.at(list));
        !now.is_empty() && now.len() < then.len()
    };
    let policy = new.at(&POLICY);
    if fewer(&ADDRESSES) {
        errors.push(policy.invalid("must be 'SingleStack' to release the secondary cluster IP"));
    }
    if fewer(&FAMILIES) {
        errors.push(policy.invalid("must be 'SingleStack' to release the secondary IP family"));
    }
}

fn check_counts(new: &Object, errors: &mut Errors) {
    let policy = new.at(&POLICY);
    if policy.str() != SINGLE {
        return;
    }
    for (list, what) in [(ADDRESSES, "cluster IPs"), (FAMILIES, "IP families")] {
        if new.at(&list).len() == 2 {
            errors.push(policy.invalid(&format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            )));
        }
    }
}

/// Infers the families from the addresses where the writer did not name them.
fn infer(new: &mut Object, configured: &[Family], errors: &mut Errors) {
    let mut families: Vec<String> = View::of(new).families().into_iter().map(str::to_owned).collect();
    let given = families.len();
    for (at, address) in new.at(&ADDRESSES).items().enumerate() {
        let Ok(ip) = address.str().parse::<IpAddr>() else { break };
        if at < families.len() {
            continue;
        }
        let family = Family::of(ip);
        if configured.contains(&family) {
            families.push(family.name().to_owned());
        } else {
            let text = format!("{} is not configured on this cluster", family.name());
            errors.push(Error::invalid_printed(&address.path(), &new.at(&ADDRESSES).printed(), &text));
        }
    }
    if families.len() > given {
        new.set(&FAMILIES, families);
    }
}

fn check_configured(spec: &View<'_>, configured: &[Family], errors: &mut Errors) {
    if spec.policy() == REQUIRE && configured.len() < 2 {
        let text = "this cluster is not configured for dual-stack services";
        errors.push(spec.field("ipFamilyPolicy").invalid(text));
    }
    for family in spec.field("ipFamilies").items() {
        if !Family::named(family.str()).is_some_and(|family| configured.contains(&family)) {
            errors.push(family.invalid("not configured on this cluster"));
        }
    }
}

/// The default family where there is none, and the other one where two are wanted and may be.
fn complete(new: &mut Object, configured: &[Family], may_be_two: bool) {
    let spec = View::of(new);
    let primary = spec.families().first().and_then(|name| Family::named(name));
    let Some(primary) = primary.or(configured.first().copied()) else { return };
    let wants_two = spec.policy() != SINGLE && may_be_two;
    if spec.families().len() < 2 {
        let families = [primary.name(), primary.other().name()];
        new.set(&FAMILIES, &families[..if wants_two { 2 } else { 1 }]);
    }
}
