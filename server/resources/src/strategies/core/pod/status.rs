//! Writes of the status of a pod: preserved fields and validation.

mod claims;
mod containers;

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object, names};

use portico_validation::Errors;
use portico_validation::pod_spec::is_sidecar;
use portico_validation::{checks, values};

const STANDARD_CONDITIONS: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];

/// Keeps fields that the new status lacks.
pub(super) fn prepare(new: &mut Object, old: &Object) {
    if new.str_at("status.qosClass").is_empty() {
        new.copy_from(old, &["status", "qosClass"]);
    }
    let observed = ["status", "observedGeneration"];
    if new.at(&observed).i64().unwrap_or(0) == 0 {
        new.copy_from(old, &observed);
    }
    let mut seen: Vec<String> = Vec::new();
    new.edit_each(&["status", "conditions"], |condition| {
        let kind = condition.str_at("type").to_owned();
        let nth = seen.iter().filter(|other| **other == kind).count();
        if condition.at(&["observedGeneration"]).i64().unwrap_or(0) == 0 {
            let before = old.at(&["status", "conditions"]);
            let old_condition = before.items().filter(|c| c.field("type").str() == kind).nth(nth);
            if let Some(number) = old_condition.and_then(|c| c.field("observedGeneration").i64()) {
                condition.set(&["observedGeneration"], number);
            }
        }
        seen.push(kind);
    });
    claims::drop_disabled(new, old);
    containers::drop_disabled(new, old);
}

/// Validates the new status.
pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let (new_value, old_value) = (new.at(&["status"]), old.at(&["status"]));
    if new_value.field("qosClass").str() != old_value.field("qosClass").str() {
        errors.push(new_value.field("qosClass").invalid_text(checks::IMMUTABLE));
    }
    check_not_negative(&new_value.field("observedGeneration"), errors);
    for condition in new_value.field("conditions").items() {
        check_not_negative(&condition.field("observedGeneration"), errors);
        let kind = condition.field("type").str();
        if !STANDARD_CONDITIONS.contains(&kind) {
            // Upstream spells this path with a capital letter.
            let path = condition.path().child("Type");
            errors.extend(names::to_field_errors(&path, kind, names::qualified_name(kind)));
        }
    }
    validate_nominated_node(new, old, errors);
    for list in ["podIPs", "hostIPs"] {
        validate_addresses(&new_value.field(list), &old_value.field(list), errors);
    }
    if let Some(ip) = new_value.field("hostIPs").items().next().map(|first| first.field("ip"))
        && ip.str() != new_value.field("hostIP").str()
    {
        errors.push(Error::invalid(&ip.path(), ip.str(), "must be equal to `hostIP`"));
    }
    validate_restarts(new, old, errors);
    claims::validate(new, errors);
    containers::validate(new, errors);
}

fn check_not_negative(at: &Cursor<'_>, errors: &mut Errors) {
    if at.i64().is_some_and(|number| number < 0) {
        errors.push(at.invalid("must be a non-negative integer"));
    }
}

fn validate_nominated_node(new: &Object, old: &Object, errors: &mut Errors) {
    let at = new.at(&["status", "nominatedNodeName"]);
    if at.str().is_empty() || at.str() == old.str_at("status.nominatedNodeName") {
        return;
    }
    if !old.str_at("spec.nodeName").is_empty() {
        errors.push(at.forbidden("may not be set on pods that are already bound to a node"));
    }
    checks::matches_rule(&at, names::dns1123_subdomain, errors);
}

/// Checks that there is at most one address of each family. Existing addresses are not validated.
fn validate_addresses(new_value: &Cursor<'_>, old_value: &Cursor<'_>, errors: &mut Errors) {
    let old_ips: HashSet<&str> = old_value.items().map(|ip| ip.field("ip").str()).collect();
    for address in new_value.items() {
        let ip = address.field("ip");
        if !old_ips.contains(ip.str()) {
            let mut found = Errors::new();
            values::ip(&ip, &mut found);
            for mut error in found {
                error.path = address.path();
                errors.push(error);
            }
        }
    }
    if new_value.len() > 1 {
        check_one_of_each_family(new_value, errors);
    }
}

fn check_one_of_each_family(addresses: &Cursor<'_>, errors: &mut Errors) {
    let texts: Vec<&str> = addresses.items().map(|address| address.field("ip").str()).collect();
    let parsed: Vec<Option<IpAddr>> = texts.iter().map(|text| text.parse().ok()).collect();
    let invalid =
        texts.iter().zip(&parsed).position(|(text, ip)| ip.is_none() && !values::is_padded_ip(text));
    if let Some(index) = invalid {
        let text = format!("failed to check for dual stack with error:invalid IP[{index}]: {}", texts[index]);
        errors.push(Error::internal(&addresses.path(), &text));
    }
    let of_six = parsed.iter().filter(|ip| ip.is_some_and(|ip| ip.to_canonical().is_ipv6())).count();
    if invalid.is_some() || of_six != 1 || parsed.len() != 2 {
        errors.push(addresses.invalid("may specify no more than one IP for each IP family"));
    }
}

/// Checks that terminated containers do not restart, unless their restart policy requires it.
fn validate_restarts(new: &Object, old: &Object, errors: &mut Errors) {
    let spec = old.at(&["spec"]);
    for (statuses, list) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ] {
        let new_statuses = by_name(&new.at(&["status", statuses]));
        let containers = by_name(&spec.field(list));
        for before in old.at(&["status", statuses]).items() {
            let terminated = before.field("state").field("terminated");
            let name = before.field("name").str();
            let after = new_statuses.get(name);
            let runs = after.is_some_and(|after| !after.field("state").field("terminated").is_present());
            if !terminated.is_present() || !runs {
                continue;
            }
            let may_restart = !list.is_empty()
                && containers
                    .get(name)
                    .is_some_and(|container| is_restarted(container, &spec, list, &terminated));
            if !may_restart {
                errors
                    .push(before.field("state").forbidden("may not be transitioned to non-terminated state"));
            }
        }
    }
}

/// Indexes elements by name. If names repeat, the first one counts.
fn by_name<'a>(list: &Cursor<'a>) -> HashMap<&'a str, Cursor<'a>> {
    let mut by_name = HashMap::new();
    for item in list.items() {
        by_name.entry(item.field("name").str()).or_insert(item);
    }
    by_name
}

/// True if a container that terminated in this way is restarted.
fn is_restarted(container: &Cursor<'_>, spec: &Cursor<'_>, list: &str, terminated: &Cursor<'_>) -> bool {
    let code = terminated.field("exitCode").i64().unwrap_or(0);
    let all_restart = portico_validation::pod_spec::all_containers(spec).iter().any(|other| {
        other
            .field("restartPolicyRules")
            .items()
            .any(|rule| rule.field("action").str() == "RestartAllContainers")
    });
    if all_restart || (list == "initContainers" && is_sidecar(container)) {
        return true;
    }
    for rule in container.field("restartPolicyRules").items() {
        let codes = rule.field("exitCodes");
        let listed = codes.field("values").items().any(|value| value.i64() == Some(code));
        if listed == (codes.field("operator").str() == "In") {
            return rule.field("action").str() == "Restart";
        }
    }
    let policy = match container.field("restartPolicy").str() {
        "" => spec.field("restartPolicy").str(),
        container_policy => container_policy,
    };
    match policy {
        "Never" => false,
        "OnFailure" => code != 0,
        _ => true,
    }
}

/// Warns about addresses in a non-canonical form.
pub(super) fn warnings(new: &Object) -> Vec<String> {
    ["podIPs", "hostIPs"]
        .iter()
        .flat_map(|list| {
            new.at(&["status", list])
                .items()
                .filter_map(|ip| values::ip_warning(&ip.field("ip")))
                .collect::<Vec<_>>()
        })
        .collect()
}
