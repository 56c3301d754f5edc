//! Validation of a Service: ports, type, addresses as given, external names, traffic policies.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object, names};

use super::is_headless;
use crate::strategies::Errors;
use crate::validation::{self, values};

pub(super) fn service(new: &Object, errors: &mut Errors) {
    let spec = new.at(&["spec"]);
    let kind = spec.field("type");
    addresses(&spec, errors);
    ports(&spec, errors);
    validation::validate_labels(&spec.field("selector"), errors);
    match spec.field("sessionAffinity").str() {
        "None" => {}
        "ClientIP" => affinity(&spec, errors),
        _ => errors.push(spec.field("sessionAffinity").not_supported(&["ClientIP", "None"])),
    }
    match kind.str() {
        "ClusterIP" | "NodePort" => {}
        "LoadBalancer" | "ExternalName" => {}
        "" => errors.push(kind.required("")),
        _ => errors.push(kind.not_supported(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"])),
    }
    for ip in spec.field("externalIPs").items() {
        let address = values::ip(&ip, errors);
        values::endpoint_ip(&ip, address, errors);
    }
    by_type(&spec, errors);
    policies(&spec, errors);
}

fn affinity(spec: &Cursor<'_>, errors: &mut Errors) {
    let seconds = spec.field("sessionAffinityConfig").field("clientIP").field("timeoutSeconds");
    let value = seconds.i64().unwrap_or(0);
    if !(1..=86_400).contains(&value) {
        errors.push(Error::invalid(&seconds.path(), value, "must be greater than 0 and less than 86400"));
    }
}

fn by_type(spec: &Cursor<'_>, errors: &mut Errors) {
    let kind = spec.field("type").str();
    match kind {
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let cursor = spec.field(field);
                if cursor.is_present() && !(cursor.is_empty() && cursor.str().is_empty()) {
                    errors.push(cursor.forbidden("may not be set for ExternalName services"));
                }
            }
            let name = spec.field("externalName");
            let bare = name.str().strip_suffix('.').unwrap_or(name.str());
            if bare.is_empty() {
                errors.push(name.required(""));
            } else {
                errors.extend(names::errors(&name.path(), name.str(), names::dns1123_subdomain(bare)));
            }
        }
        "LoadBalancer" | "NodePort" if is_headless(spec) => {
            let text = format!("may not be set to 'None' for {kind} services");
            errors.push(Error::invalid(&spec.field("clusterIPs").path().index(0), "None", &text));
        }
        _ => {}
    }
}

/// The rules about addresses that need no allocator.
fn addresses(spec: &Cursor<'_>, errors: &mut Errors) {
    let (one, list) = (spec.field("clusterIP"), spec.field("clusterIPs"));
    if spec.field("type").str() == "ExternalName" {
        return;
    }
    let first = list.items().next();
    match (&first, one.str()) {
        (Some(_), "") => errors.push(list.invalid("must be empty when `clusterIP` is not specified")),
        (Some(first), ip) if first.str() != ip => {
            errors.push(list.invalid("first value must match `clusterIP`"));
        }
        _ => {}
    }
    if list.len() > 1 && list.items().any(|ip| ip.str() == "None") {
        errors.push(list.invalid("'None' must be the first and only value"));
    }
    if list.len() > 2 {
        errors.push(list.invalid("may only hold up to 2 values"));
    }
    for ip in list.items().filter(|ip| ip.str() != "None") {
        values::ip(&ip, errors);
    }
    for family in spec.field("ipFamilies").items() {
        if !matches!(family.str(), "IPv4" | "IPv6") {
            errors.push(family.not_supported(&["IPv4", "IPv6"]));
        }
    }
    let policy = spec.field("ipFamilyPolicy");
    if !matches!(policy.str(), "" | "PreferDualStack" | "RequireDualStack" | "SingleStack") {
        errors.push(policy.not_supported(&["PreferDualStack", "RequireDualStack", "SingleStack"]));
    }
}

fn ports(spec: &Cursor<'_>, errors: &mut Errors) {
    let ports = spec.field("ports");
    if ports.is_empty() && !is_headless(spec) && spec.field("type").str() != "ExternalName" {
        errors.push(ports.required(""));
    }
    let (mut named, mut numbered, mut node_ports) = (HashSet::new(), HashSet::new(), HashSet::new());
    for port in ports.items() {
        let (name, protocol) = (port.field("name"), port.field("protocol"));
        if name.str().is_empty() {
            if ports.len() > 1 {
                errors.push(name.required(""));
            }
        } else {
            errors.extend(names::errors(&name.path(), name.str(), values::label(name.str())));
            if !named.insert(name.str()) {
                errors.push(Error::duplicate(&name.path(), name.str()));
            }
        }
        one_port(spec, &port, errors);
        let number = port.field("port").i64().unwrap_or(0);
        if !numbered.insert((protocol.str(), number)) {
            errors.push(Error {
                kind: portico_machinery::field::ErrorType::Duplicate,
                path: port.path().clone(),
                body: format!("Duplicate value: {}", port.printed()),
            });
        }
        let node_port = port.field("nodePort");
        let node = node_port.i64().unwrap_or(0);
        if node != 0 && !node_ports.insert((protocol.str(), node)) {
            errors.push(Error::duplicate(&node_port.path(), node));
        }
    }
}

fn one_port(spec: &Cursor<'_>, port: &Cursor<'_>, errors: &mut Errors) {
    values::port(&port.field("port"), errors);
    let protocol = port.field("protocol");
    match protocol.str() {
        "" => errors.push(protocol.required("")),
        "TCP" | "UDP" | "SCTP" => {}
        _ => errors.push(protocol.not_supported(&["SCTP", "TCP", "UDP"])),
    }
    let target = port.field("targetPort");
    match target.opt_str() {
        Some(name) => errors.extend(values::port_name(name).iter().map(|m| target.invalid(m))),
        None if is_headless(spec) => {}
        None => values::port(&target, errors),
    }
    let app = port.field("appProtocol");
    if app.is_present() {
        errors.extend(names::errors(&app.path(), app.str(), names::qualified_name(app.str())));
    }
    let node_port = port.field("nodePort");
    if spec.field("type").str() == "ClusterIP" && node_port.i64().unwrap_or(0) != 0 {
        errors.push(node_port.forbidden("may not be used when `type` is 'ClusterIP'"));
    }
}

fn policies(spec: &Cursor<'_>, errors: &mut Errors) {
    let kind = spec.field("type").str();
    let external = matches!(kind, "NodePort" | "LoadBalancer")
        || (kind == "ClusterIP" && !spec.field("externalIPs").is_empty());
    let traffic = spec.field("externalTrafficPolicy");
    if !traffic.str().is_empty() {
        if !external {
            errors.push(traffic.invalid("may only be set for externally-accessible services"));
        } else if !matches!(traffic.str(), "Cluster" | "Local") {
            errors.push(traffic.not_supported(&["Cluster", "Local"]));
        }
    }
    let internal = spec.field("internalTrafficPolicy");
    if !matches!(internal.str(), "" | "Cluster" | "Local") {
        errors.push(internal.not_supported(&["Cluster", "Local"]));
    }
    let distribution = spec.field("trafficDistribution");
    if !matches!(distribution.str(), "" | "PreferClose" | "PreferSameZone" | "PreferSameNode") {
        errors.push(distribution.not_supported(&["PreferClose", "PreferSameZone", "PreferSameNode"]));
    }
    if kind == "LoadBalancer" {
        return;
    }
    for (field, path) in [
        ("loadBalancerSourceRanges", "spec.LoadBalancerSourceRanges"),
        ("allocateLoadBalancerNodePorts", "spec.allocateLoadBalancerNodePorts"),
        ("loadBalancerClass", "spec.loadBalancerClass"),
    ] {
        let cursor = spec.field(field);
        if cursor.is_present() && !(cursor.is_empty() && field == "loadBalancerSourceRanges") {
            let text = "may only be used when `type` is 'LoadBalancer'";
            errors.push(Error::forbidden(&path.into(), text));
        }
    }
}

/// An address, once set, stays; external names and headless services have none to keep.
pub(super) fn update(new: &Object, old: &Object, errors: &mut Errors) {
    let (new, old) = (new.at(&["spec"]), old.at(&["spec"]));
    let external = |spec: &Cursor<'_>| spec.field("type").str() == "ExternalName";
    let before = old.field("clusterIP").str();
    if external(&new) || external(&old) || before.is_empty() {
        return;
    }
    let list = new.field("clusterIPs");
    if new.field("clusterIP").str() != before {
        let text = "may not change once set";
        errors.push(Error::invalid_printed(&list.path().index(0), &list.printed(), text));
    }
}

pub(super) fn status(new: &Object, errors: &mut Errors) {
    let ingress = new.at(&["status", "loadBalancer", "ingress"]);
    if !ingress.is_empty() && new.at(&["spec", "type"]).str() != "LoadBalancer" {
        errors.push(ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'"));
    }
    for entry in ingress.items() {
        let (ip, mode, hostname) = (entry.field("ip"), entry.field("ipMode"), entry.field("hostname"));
        if !ip.str().is_empty() {
            values::ip(&ip, errors);
        }
        match (ip.str().is_empty(), mode.opt_str()) {
            (false, None) => errors.push(mode.required("must be specified when `ip` is set")),
            (true, Some(_)) => errors.push(mode.forbidden("may not be specified when `ip` is not set")),
            (false, Some("VIP" | "Proxy")) | (true, None) => {}
            (false, Some(_)) => errors.push(mode.not_supported(&["Proxy", "VIP"])),
        }
        if !hostname.str().is_empty() {
            errors.extend(names::errors(
                &hostname.path(),
                hostname.str(),
                names::dns1123_subdomain(hostname.str()),
            ));
            if hostname.str().parse::<std::net::IpAddr>().is_ok() {
                errors.push(hostname.invalid("must be a DNS name, not an IP address"));
            }
        }
    }
}
