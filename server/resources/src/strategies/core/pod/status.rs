//! Writes of a pod's status: what stays, and what may not be set.

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

/// Keeps what the writer left out.
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
            let same = before.items().filter(|c| c.field("type").str() == kind).nth(nth);
            if let Some(number) = same.and_then(|c| c.field("observedGeneration").i64()) {
                condition.set(&["observedGeneration"], number);
            }
        }
        seen.push(kind);
    });
    claims::drop_disabled(new, old);
    containers::drop_disabled(new, old);
}

/// Validates a status.
pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let (now, then) = (new.at(&["status"]), old.at(&["status"]));
    if now.field("qosClass").str() != then.field("qosClass").str() {
        errors.push(now.field("qosClass").invalid_text(checks::IMMUTABLE));
    }
    not_negative(&now.field("observedGeneration"), errors);
    for condition in now.field("conditions").items() {
        not_negative(&condition.field("observedGeneration"), errors);
        let kind = condition.field("type").str();
        if !STANDARD_CONDITIONS.contains(&kind) {
            // Upstream writes this one field with a capital.
            let path = condition.path().child("Type");
            errors.extend(names::errors(&path, kind, names::qualified_name(kind)));
        }
    }
    nominated_node(new, old, errors);
    for list in ["podIPs", "hostIPs"] {
        addresses(&now.field(list), &then.field(list), errors);
    }
    if let Some(ip) = now.field("hostIPs").items().next().map(|first| first.field("ip"))
        && ip.str() != now.field("hostIP").str()
    {
        errors.push(Error::invalid(&ip.path(), ip.str(), "must be equal to `hostIP`"));
    }
    restarted(new, old, errors);
    claims::validate(new, errors);
    containers::validate(new, errors);
}

fn not_negative(at: &Cursor<'_>, errors: &mut Errors) {
    if at.i64().is_some_and(|number| number < 0) {
        errors.push(at.invalid("must be a non-negative integer"));
    }
}

fn nominated_node(new: &Object, old: &Object, errors: &mut Errors) {
    let at = new.at(&["status", "nominatedNodeName"]);
    if at.str().is_empty() || at.str() == old.str_at("status.nominatedNodeName") {
        return;
    }
    if !old.str_at("spec.nodeName").is_empty() {
        errors.push(at.forbidden("may not be set on pods that are already bound to a node"));
    }
    checks::follows(&at, names::dns1123_subdomain, errors);
}

/// One of each family; what was there before is excused.
fn addresses(now: &Cursor<'_>, then: &Cursor<'_>, errors: &mut Errors) {
    let known: HashSet<&str> = then.items().map(|ip| ip.field("ip").str()).collect();
    for address in now.items() {
        let ip = address.field("ip");
        if !known.contains(ip.str()) {
            let mut found = Errors::new();
            values::ip(&ip, &mut found);
            for mut error in found {
                error.path = address.path();
                errors.push(error);
            }
        }
    }
    if now.len() > 1 {
        one_of_each_family(now, errors);
    }
}

fn one_of_each_family(now: &Cursor<'_>, errors: &mut Errors) {
    let texts: Vec<&str> = now.items().map(|address| address.field("ip").str()).collect();
    let parsed: Vec<Option<IpAddr>> = texts.iter().map(|text| text.parse().ok()).collect();
    let invalid =
        texts.iter().zip(&parsed).position(|(text, ip)| ip.is_none() && !values::is_padded_ip(text));
    if let Some(index) = invalid {
        let text = format!("failed to check for dual stack with error:invalid IP[{index}]: {}", texts[index]);
        errors.push(Error::internal(&now.path(), &text));
    }
    let of_six = parsed.iter().filter(|ip| ip.is_some_and(|ip| ip.to_canonical().is_ipv6())).count();
    if invalid.is_some() || of_six != 1 || parsed.len() != 2 {
        errors.push(now.invalid("may specify no more than one IP for each IP family"));
    }
}

/// What ended does not run again, unless it should.
fn restarted(new: &Object, old: &Object, errors: &mut Errors) {
    let spec = old.at(&["spec"]);
    for (statuses, list) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ] {
        let now = by_name(&new.at(&["status", statuses]));
        let containers = by_name(&spec.field(list));
        for before in old.at(&["status", statuses]).items() {
            let ended = before.field("state").field("terminated");
            let name = before.field("name").str();
            let after = now.get(name);
            let runs = after.is_some_and(|after| !after.field("state").field("terminated").is_present());
            if !ended.is_present() || !runs {
                continue;
            }
            let may = !list.is_empty()
                && containers.get(name).is_some_and(|container| restarts(container, &spec, list, &ended));
            if !may {
                errors
                    .push(before.field("state").forbidden("may not be transitioned to non-terminated state"));
            }
        }
    }
}

/// The first of each name.
fn by_name<'a>(list: &Cursor<'a>) -> HashMap<&'a str, Cursor<'a>> {
    let mut named = HashMap::new();
    for item in list.items() {
        named.entry(item.field("name").str()).or_insert(item);
    }
    named
}

/// Whether a container that ended like this is started again.
fn restarts(container: &Cursor<'_>, spec: &Cursor<'_>, list: &str, ended: &Cursor<'_>) -> bool {
    let code = ended.field("exitCode").i64().unwrap_or(0);
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
        own => own,
    };
    match policy {
        "Never" => false,
        "OnFailure" => code != 0,
        _ => true,
    }
}

/// Addresses that should be written otherwise.
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
