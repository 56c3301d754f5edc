//! The warnings for a writer of a Service.

use portico_machinery::Object;

use super::view::View;
use portico_validation::{ranges, values};

const HINTS: &str = "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead";

/// Warnings about a Service.
pub(super) fn of(new: &Object) -> Vec<String> {
    let spec = View::of(new);
    let (external_name, headless) = (spec.is_external_name(), spec.is_headless());
    let has = |field| !spec.field(field).str().is_empty();
    let external_ips = !spec.field("externalIPs").is_empty();
    let mut warnings = Vec::new();
    let mut warn = |when: bool, text: &str| {
        if when {
            warnings.push(text.to_owned());
        }
    };
    warn(new.annotation("service.kubernetes.io/topology-aware-hints").is_some(), HINTS);
    warn(headless && has("loadBalancerIP"), "spec.loadBalancerIP is ignored for headless services");
    warn(headless && external_ips, "spec.externalIPs is ignored for headless services");
    warn(
        headless && spec.field("sessionAffinity").str() == "ClientIP",
        "spec.SessionAffinity is ignored for headless services",
    );
    warn(
        external_ips && !headless && !external_name,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    warn(external_ips && external_name, "spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    warn(
        has("externalName") && !external_name,
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    warn(
        spec.field("trafficDistribution").str() == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    for list in ["clusterIPs", "externalIPs"] {
        let addresses = spec.field(list).items().filter(|ip| ip.str() != "None");
        warnings.extend(addresses.filter_map(|ip| values::ip_warning(&ip)));
    }
    if has("loadBalancerIP") {
        warnings.extend(values::ip_warning(&spec.field("loadBalancerIP")));
    }
    let sources = spec.field("loadBalancerSourceRanges");
    warnings.extend(sources.items().filter_map(|range| ranges::warning(&range)));
    warnings
}

/// Warnings about its status.
pub(super) fn of_status(new: &Object) -> Vec<String> {
    let ingress = new.at(&["status", "loadBalancer", "ingress"]);
    let addresses = ingress.items().filter(|entry| !entry.field("ip").str().is_empty());
    addresses.filter_map(|entry| values::ip_warning_at(&entry.path(), entry.field("ip").str())).collect()
}
