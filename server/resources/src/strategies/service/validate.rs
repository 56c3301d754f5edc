//! Validation of a Service: ports, type, addresses, external names and traffic policies.

use std::collections::HashSet;
use std::net::IpAddr;

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, Object, names};

use super::service_spec::ServiceSpec;
use crate::allocation::IpFamily;
use portico_validation::Errors;
use portico_validation::{self as validation, checks, ranges, values};

const ONLY_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";

/// Validates a Service as it would be stored.
pub(super) fn validate_service(new: &Object, old_addresses: &[&str], errors: &mut Errors) {
    let spec = new.at(&["spec"]);
    let kind = spec.field("type");
    validate_addresses(new, old_addresses, errors);
    validate_ports(&spec, errors);
    validation::validate_labels(&spec.field("selector"), errors);
    match spec.field("sessionAffinity").str() {
        "None" => {}
        "ClientIP" => validate_affinity(&spec, errors),
        _ => errors.push(spec.field("sessionAffinity").not_supported(&["ClientIP", "None"])),
    }
    match kind.str() {
        "ClusterIP" | "NodePort" => {}
        "LoadBalancer" | "ExternalName" => {}
        "" => errors.push(kind.required("")),
        _ => errors.push(kind.not_supported(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"])),
    }
    for ip in spec.field("externalIPs").items() {
        if let Some(address) = values::ip(&ip, errors) {
            values::endpoint_ip(&ip, Some(address), errors);
        }
    }
    by_type(&spec, errors);
    validate_policies(&spec, errors);
    validate_load_balancer(new, errors);
    validate_topology(new, errors);
}

fn validate_affinity(spec: &Cursor<'_>, errors: &mut Errors) {
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
                errors.extend(names::to_field_errors(&name.path(), bare, names::dns1123_subdomain(bare)));
            }
        }
        "LoadBalancer" | "NodePort" if is_headless(spec) => {
            let text = format!("may not be set to 'None' for {kind} services");
            errors.push(Error::invalid(&spec.field("clusterIPs").path().index(0), "None", &text));
        }
        _ => {}
    }
}

/// Validates addresses without the allocator. Runs before the allocation and again on the final object. Addresses in
/// `old_addresses` may have a non-canonical form.
pub(super) fn validate_addresses(new: &Object, old_addresses: &[&str], errors: &mut Errors) {
    let spec = ServiceSpec::of(new);
    if spec.is_external_name() {
        return;
    }
    let (cluster_ip, cluster_ips) = (spec.field("clusterIP"), spec.field("clusterIPs"));
    match (cluster_ips.items().next(), cluster_ip.str()) {
        (Some(_), "") => errors.push(cluster_ips.invalid("must be empty when `clusterIP` is not specified")),
        (None, "") => {}
        (None, _) => errors.push(cluster_ips.required("")),
        (Some(first), ip) if first.str() != ip => {
            errors.push(cluster_ips.invalid("first value must match `clusterIP`"));
        }
        (Some(_), _) => {}
    }
    validate_families(&spec, errors);
    if validate_each_address(&cluster_ips, old_addresses, errors) {
        return;
    }
    let parsed: Vec<IpAddr> = spec.addresses().iter().filter_map(|ip| ip.parse().ok()).collect();
    if cluster_ips.len() > 1 && !matches!(parsed.as_slice(), [a, b] if a.is_ipv4() != b.is_ipv4()) {
        errors.push(cluster_ips.invalid("may specify no more than one IP for each IP family"));
    }
    if spec.is_headless() {
        return;
    }
    for (index, (ip, family)) in parsed.iter().zip(spec.families()).enumerate() {
        if matches!(family, "IPv4" | "IPv6") && IpFamily::of(*ip).name() != family {
            let text = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.push(Error::invalid(&cluster_ips.path().index(index), ip.to_string(), &text));
        }
    }
}

/// Validates each address. Returns `true` if any is invalid.
fn validate_each_address(list: &Cursor<'_>, old_addresses: &[&str], errors: &mut Errors) -> bool {
    let before = errors.len();
    for (index, ip) in list.items().enumerate() {
        if index == 0 && ip.str() == "None" {
            if list.len() > 1 {
                errors.push(list.invalid("'None' must be the first and only value"));
            }
        } else if !old_addresses.contains(&ip.str()) {
            values::ip(&ip, errors);
        }
    }
    let has_errors = errors.len() > before;
    if list.len() > 2 {
        errors.push(list.invalid("may only hold up to 2 values"));
    }
    has_errors
}

fn validate_families(spec: &ServiceSpec<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for family in spec.field("ipFamilies").items() {
        checks::one_of(&family, &["IPv4", "IPv6"], errors);
        checks::unique(&mut seen, &family, errors);
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    checks::one_of(&spec.field("ipFamilyPolicy"), &policies, errors);
}

fn is_headless(spec: &Cursor<'_>) -> bool {
    spec.field("clusterIP").str() == "None"
}

fn validate_ports(spec: &Cursor<'_>, errors: &mut Errors) {
    let ports = spec.field("ports");
    if ports.is_empty() && !is_headless(spec) && spec.field("type").str() != "ExternalName" {
        errors.push(ports.required(""));
    }
    let (mut names, mut numbers, mut node_ports) = (HashSet::new(), HashSet::new(), HashSet::new());
    for port in ports.items() {
        let (name, protocol) = (port.field("name"), port.field("protocol"));
        if name.str().is_empty() {
            if ports.len() > 1 {
                errors.push(name.required(""));
            }
        } else {
            errors.extend(names::to_field_errors(&name.path(), name.str(), values::label(name.str())));
            if !names.insert(name.str()) {
                errors.push(Error::duplicate(&name.path(), name.str()));
            }
        }
        validate_one_port(spec, &port, errors);
        let number = port.field("port").i64().unwrap_or(0);
        if !numbers.insert((protocol.str(), number)) {
            errors.push(Error {
                kind: portico_machinery::field::ErrorType::Duplicate,
                path: port.path().clone(),
                // Upstream compares copies of ports that have only these fields.
                body: format!(
                    "Duplicate value: {{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}",
                    protocol.printed()
                ),
            });
        }
        let node_port = port.field("nodePort");
        let node = node_port.i64().unwrap_or(0);
        if node != 0 && !node_ports.insert((protocol.str(), node)) {
            errors.push(Error::duplicate(&node_port.path(), node));
        }
    }
}

fn validate_one_port(spec: &Cursor<'_>, port: &Cursor<'_>, errors: &mut Errors) {
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
        None => values::port(&target, errors),
    }
    let app = port.field("appProtocol");
    if app.is_present() {
        errors.extend(names::to_field_errors(&app.path(), app.str(), names::qualified_name(app.str())));
    }
    let node_port = port.field("nodePort");
    if spec.field("type").str() == "ClusterIP" && node_port.i64().unwrap_or(0) != 0 {
        errors.push(node_port.forbidden("may not be used when `type` is 'ClusterIP'"));
    }
}

fn validate_policies(spec: &Cursor<'_>, errors: &mut Errors) {
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
    if internal.is_present() && !matches!(internal.str(), "Cluster" | "Local") {
        errors.push(internal.not_supported(&["Cluster", "Local"]));
    }
    let distribution = spec.field("trafficDistribution");
    let is_supported = matches!(distribution.str(), "PreferClose" | "PreferSameZone" | "PreferSameNode");
    if distribution.is_present() && !is_supported {
        errors.push(distribution.not_supported(&["PreferClose", "PreferSameZone", "PreferSameNode"]));
    }
}

/// Validates fields that only load balancers have.
fn validate_load_balancer(new: &Object, errors: &mut Errors) {
    let spec = ServiceSpec::of(new);
    let (is_balancer, class) = (spec.kind() == "LoadBalancer", spec.field("loadBalancerClass"));
    validate_source_ranges(new, is_balancer, errors);
    let allocate = spec.field("allocateLoadBalancerNodePorts");
    if !is_balancer {
        errors.extend(
            [allocate, class].iter().filter(|at| at.is_present()).map(|at| at.forbidden(ONLY_BALANCER)),
        );
    } else if class.is_present() {
        checks::matches_rule(&class, names::qualified_name, errors);
    }
    let health = spec.field("healthCheckNodePort");
    if spec.health_port() != 0 && !spec.needs_health_port() {
        errors.push(
            health.invalid(
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
            ),
        );
    } else if spec.needs_health_port() {
        values::port(&health, errors);
    }
}

/// Validates the source ranges in the field or in the annotation that preceded it.
fn validate_source_ranges(new: &Object, is_balancer: bool, errors: &mut Errors) {
    let list = new.at(&["spec", "loadBalancerSourceRanges"]);
    if !list.is_empty() {
        // Upstream spells the path with a capital letter.
        let path = Path::new("spec.LoadBalancerSourceRanges");
        if !is_balancer {
            errors.push(Error::forbidden(&path, ONLY_BALANCER));
        }
        for (index, range) in list.items().enumerate() {
            if let Err(text) = ranges::parse(range.str().trim()) {
                errors.push(Error::invalid(&path.index(index), range.str().trim(), text));
            }
        }
        return;
    }
    let Some(annotation) = new.annotation(SOURCE_RANGES) else { return };
    let path = Path::new("metadata.annotations").key(SOURCE_RANGES);
    if !is_balancer {
        errors.push(Error::forbidden(&path, ONLY_BALANCER));
    }
    let annotation = annotation.trim();
    for range in annotation.split(',').map(str::trim).filter(|_| !annotation.is_empty()) {
        if let Err(text) = ranges::parse(range) {
            errors.push(Error::invalid(&path, range, text));
        }
    }
}

fn validate_topology(new: &Object, errors: &mut Errors) {
    let (mode, hints) = (new.annotation(TOPOLOGY_MODE), new.annotation(TOPOLOGY_HINTS));
    if let (Some(mode), Some(hints)) = (mode, hints)
        && mode != hints
    {
        let path = Path::new("metadata.annotations").key(TOPOLOGY_MODE);
        let text = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        errors.push(Error::invalid(&path, mode, &text));
    }
}

/// Validates the status.
pub(super) fn validate_status(new: &Object, errors: &mut Errors) {
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
            errors.extend(names::to_field_errors(
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
