//! Warnings about Services.

use portico_machinery::Object;

use super::service_spec::ServiceSpec;
use portico_validation::{ranges, values};

const HINTS: &str = "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead";

/// Returns warnings about a Service.
pub(super) fn service_warnings(new: &Object) -> Vec<String> {
    let spec = ServiceSpec::of(new);
    let (external_name, headless) = (spec.is_external_name(), spec.is_headless());
    let has = |field| !spec.field(field).str().is_empty();
    let external_ips = !spec.field("externalIPs").is_empty();
    let mut warnings = Vec::new();
    let warn = |warnings: &mut Vec<String>, condition: bool, text: &str| {
        if condition {
            warnings.push(text.to_owned());
        }
    };
    let has_hints = new.annotation("service.kubernetes.io/topology-aware-hints").is_some();
    warn(&mut warnings, has_hints, HINTS);
    let addresses = |field| spec.field(field).items().filter(|ip| ip.str() != "None");
    warnings.extend(addresses("clusterIPs").filter_map(|ip| values::ip_warning(&ip)));
    let affine = spec.field("sessionAffinity").str() == "ClientIP";
    for (condition, field) in [
        (has("loadBalancerIP"), "loadBalancerIP"),
        (external_ips, "externalIPs"),
        (affine, "SessionAffinity"),
    ] {
        warn(&mut warnings, headless && condition, &format!("spec.{field} is ignored for headless services"));
    }
    warnings.extend(addresses("externalIPs").filter_map(|ip| values::ip_warning(&ip)));
    warn(
        &mut warnings,
        external_ips && !headless && !external_name,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    if has("loadBalancerIP") {
        warnings.extend(values::ip_warning(&spec.field("loadBalancerIP")));
    }
    let sources = spec.field("loadBalancerSourceRanges");
    warnings.extend(sources.items().flat_map(|range| ranges::warnings(&range)));
    warn(
        &mut warnings,
        external_ips && external_name,
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    warn(
        &mut warnings,
        has("externalName") && !external_name,
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    warn(
        &mut warnings,
        spec.field("trafficDistribution").str() == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    warnings
}

/// Returns warnings about the status of a Service.
pub(super) fn status_warnings(new: &Object) -> Vec<String> {
    let ingress = new.at(&["status", "loadBalancer", "ingress"]);
    let addresses = ingress.items().filter(|entry| !entry.field("ip").str().is_empty());
    addresses.filter_map(|entry| values::ip_warning_at(&entry.path(), entry.field("ip").str())).collect()
}
