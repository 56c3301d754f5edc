//! Address families of a Service: policy, list of families, and support by the server.

use std::net::IpAddr;

use portico_machinery::Object;
use portico_machinery::field::Error;

use super::service_spec::ServiceSpec;
use super::validate;
use crate::allocation::IpFamily;
use portico_validation::Errors;
use portico_validation::checks;

const SINGLE: &str = "SingleStack";
const PREFER: &str = "PreferDualStack";
const REQUIRE: &str = "RequireDualStack";
const POLICY: [&str; 2] = ["spec", "ipFamilyPolicy"];
const FAMILIES: [&str; 2] = ["spec", "ipFamilies"];
const ADDRESSES: [&str; 2] = ["spec", "clusterIPs"];

/// Defaults and checks the policy and the families. `server_families` contains the families of the server, the default one first.
/// If errors are returned, the object may be incomplete.
pub(super) fn normalize_families(
    new: &mut Object,
    old: Option<&Object>,
    server_families: &[IpFamily],
) -> Errors {
    let mut errors = Vec::new();
    if ServiceSpec::of(new).is_external_name() || old.is_some_and(|old| keeps_dual_stack_preference(new, old))
    {
        return errors;
    }
    default_policy(new, old);
    let old_addresses = old.map(|old| ServiceSpec::of(old).addresses()).unwrap_or_default();
    validate::validate_addresses(new, &old_addresses, &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    if let Some(old) = old {
        downgrade_to_single_stack(new, old, &mut errors);
    }
    check_counts(new, &mut errors);
    infer_families(new, server_families, &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    let spec = ServiceSpec::of(new);
    if spec.is_headless() && !spec.has_selector() {
        // The endpoints are set by the user and can have both families, independent of the server.
        complete_families(new, server_families, true);
        return errors;
    }
    check_configured(&spec, server_families, &mut errors);
    if errors.is_empty() {
        complete_families(new, server_families, server_families.len() > 1);
    }
    errors
}

/// True if an update does not change a preference for dual-stack. Such a Service is not modified, because the families of the
/// server may have changed.
pub(super) fn keeps_dual_stack_preference(new: &Object, old: &Object) -> bool {
    let (new_spec, old_spec) = (ServiceSpec::of(new), ServiceSpec::of(old));
    let prefers = |view: &ServiceSpec<'_>| matches!(view.policy(), "" | PREFER);
    let both_unset = new_spec.policy().is_empty() && old_spec.policy().is_empty();
    new_spec.kind() == old_spec.kind()
        && new_spec.needs_address()
        && prefers(&new_spec)
        && prefers(&old_spec)
        && !both_unset
        && ["clusterIPs", "ipFamilies"]
            .iter()
            .all(|f| checks::is_same(&new_spec.field(f), &old_spec.field(f)))
}

fn default_policy(new: &mut Object, old: Option<&Object>) {
    if new.at(&POLICY).is_present() {
        return;
    }
    let spec = ServiceSpec::of(new);
    let free = spec.is_headless() && !spec.has_selector();
    let before = old.map(|old| ServiceSpec::of(old).policy()).filter(|policy| !policy.is_empty());
    let policy = before.unwrap_or(if free { REQUIRE } else { SINGLE });
    new.set(&POLICY, policy);
}

/// Removes the second address and family if the policy changes to `SingleStack`, and refuses other removals.
fn downgrade_to_single_stack(new: &mut Object, old: &Object, errors: &mut Errors) {
    if new.at(&POLICY).str() == SINGLE {
        for list in [ADDRESSES, FAMILIES] {
            let first = new.at(&list).items().next().map(|item| item.str().to_owned());
            if new.at(&list).len() > 1 && checks::is_same(&new.at(&list), &old.at(&list)) {
                new.set(&list, first.into_iter().collect::<Vec<_>>());
            }
        }
        return;
    }
    let fewer = |list: &[&str]| {
        let (new_value, old_value) = (new.at(list), old.at(list));
        !new_value.is_empty() && new_value.len() < old_value.len()
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
    for (list, items) in [(ADDRESSES, "cluster IPs"), (FAMILIES, "IP families")] {
        if new.at(&list).len() == 2 {
            errors.push(policy.invalid(&format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {items} are specified"
            )));
        }
    }
}

/// Infers absent families from the addresses.
fn infer_families(new: &mut Object, server_families: &[IpFamily], errors: &mut Errors) {
    let mut families: Vec<String> = ServiceSpec::of(new).families().into_iter().map(str::to_owned).collect();
    let count = families.len();
    for (index, address) in new.at(&ADDRESSES).items().enumerate() {
        let Ok(ip) = address.str().parse::<IpAddr>() else { break };
        if index < families.len() {
            continue;
        }
        let family = IpFamily::of(ip);
        if server_families.contains(&family) {
            families.push(family.name().to_owned());
        } else {
            let text = format!("{} is not configured on this cluster", family.name());
            errors.push(Error::invalid_printed(&address.path(), &new.at(&ADDRESSES).printed(), &text));
        }
    }
    if families.len() > count {
        new.set(&FAMILIES, families);
    }
}

fn check_configured(spec: &ServiceSpec<'_>, server_families: &[IpFamily], errors: &mut Errors) {
    if spec.policy() == REQUIRE && server_families.len() < 2 {
        let text = "this cluster is not configured for dual-stack services";
        errors.push(spec.field("ipFamilyPolicy").invalid(text));
    }
    for family in spec.field("ipFamilies").items() {
        if !IpFamily::from_name(family.str()).is_some_and(|family| server_families.contains(&family)) {
            errors.push(family.invalid("not configured on this cluster"));
        }
    }
}

/// Adds the default family, and also the other family if the policy allows two families and `may_be_two` is true.
fn complete_families(new: &mut Object, server_families: &[IpFamily], may_be_two: bool) {
    let spec = ServiceSpec::of(new);
    let primary = spec.families().first().and_then(|name| IpFamily::from_name(name));
    let Some(primary) = primary.or(server_families.first().copied()) else { return };
    let wants_two = spec.policy() != SINGLE && may_be_two;
    if spec.families().len() < 2 {
        let families = [primary.name(), primary.other().name()];
        new.set(&FAMILIES, &families[..if wants_two { 2 } else { 1 }]);
    }
}
