//! Resolution of an APIService's Service and port to addresses, or to the reason why there are none.
//!
//! Free of IO: does not look up host names, choose at random, or depend on the caller. The proxy rotates over the targets, the
//! availability controller probes them, and webhooks call them.

mod api_service;
mod backend_policy;
mod backend_urls;
mod facts;
mod index;
mod service;
mod slice;

pub use api_service::{AUTOMANAGED_LABEL, ApiServiceFacts, BackendFacts, Bundle, CaBundle};
pub use backend_policy::{
    BACKEND_EJECTION_FAILURES, BACKEND_EJECTION_TIME, BACKEND_HEDGE_AFTER, BACKEND_MAX_CONNECTIONS,
    BACKEND_MIRROR, BACKEND_MIRROR_MAX_BODY, BACKEND_MIRROR_PERCENT, BACKEND_MIRROR_SERVER_NAME,
    BACKEND_PER_TRY_TIMEOUT, BACKEND_POLICY, BACKEND_RETRIES, BACKEND_WEIGHTS, backend_policy,
    check_backend_policy,
};
pub use backend_urls::{
    BACKEND_PROTOCOL, BACKEND_SERVER_NAME, BACKEND_URLS, InvalidBackendUrls, backend_urls,
};
pub use facts::{AffectedApiServices, FactSource, RoutingFacts};
pub use index::{ServiceIndex, ServiceKey};
pub use service::{ServiceFacts, ServicePort, ServiceType};
pub use slice::{AddressFamily, EndpointFacts, SERVICE_NAME_LABEL, SliceFacts, SlicePort};

use crate::route::{ResolveError, ServiceReference, Target};

/// Reason: the Service does not exist.
pub const SERVICE_NOT_FOUND: &str = "ServiceNotFound";
/// Reason: the Service does not have the port.
pub const SERVICE_PORT_ERROR: &str = "ServicePortError";
/// Reason: the Service has no EndpointSlices.
pub const ENDPOINTS_NOT_FOUND: &str = "EndpointsNotFound";
/// Reason: no EndpointSlice has a ready address for the name of the Service port.
pub const MISSING_ENDPOINTS: &str = "MissingEndpoints";
/// Reason: any other cause of an unavailable backend.
pub const FAILED_DISCOVERY_CHECK: &str = "FailedDiscoveryCheck";

/// Resolution of a Service: upstream's `ResolveCluster` or `ResolveEndpoint` in package util/proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResolveMode {
    /// Cluster IP, which kube-proxy or similar software must route: `--enable-aggregator-routing=false`.
    ClusterIp,
    /// Endpoints of the Service.
    #[default]
    Endpoints,
}

/// Returns the addresses of a Service's port in a deterministic order: slices of the Service's first IP family, then by name,
/// endpoints in the order of the slice. Other families are used only if the first one has no address.
///
/// A Service without a cluster IP (which is not headless) resolves to its endpoints in both modes, and a Service of type
/// ExternalName to its host (upstream's `ResolveEndpoint` rejects that type).
///
/// # Errors
/// Reason and message of the Available condition if there is no address.
pub fn resolve(
    mode: ResolveMode,
    service: Option<&ServiceFacts>,
    slices: &[&SliceFacts],
    reference: &ServiceReference,
) -> Result<Vec<Target>, ResolveError> {
    let Some(service) = service else { return Err(service_not_found(reference)) };
    match (mode, &service.kind) {
        (_, ServiceType::ExternalName) => external_name(service, reference),
        (ResolveMode::ClusterIp, kind) if kind.has_cluster_ip() => cluster_ip(service, slices, reference),
        (ResolveMode::Endpoints, kind) if kind.has_cluster_ip() => endpoints(service, slices, reference),
        (_, kind) => {
            Err(discovery_check_error(reference, &format!("has the unsupported type {:?}", kind.as_str())))
        }
    }
}

/// Checks the two conditions of the availability controller that need no network: the port exists, and slices have a usable
/// address for its name.
///
/// # Errors
/// Reason and message of the condition.
pub fn check_endpoints(
    service: &ServiceFacts,
    slices: &[&SliceFacts],
    reference: &ServiceReference,
) -> Result<(), ResolveError> {
    endpoints(service, slices, reference).map(drop)
}

fn external_name(service: &ServiceFacts, reference: &ServiceReference) -> Result<Vec<Target>, ResolveError> {
    if service.external_name.is_empty() {
        return Err(discovery_check_error(reference, "has no externalName"));
    }
    Ok(vec![Target { host: service.external_name.clone(), port: reference.port }])
}

fn cluster_ip(
    service: &ServiceFacts,
    slices: &[&SliceFacts],
    reference: &ServiceReference,
) -> Result<Vec<Target>, ResolveError> {
    match service.cluster_ip.as_str() {
        "None" => Err(discovery_check_error(
            reference,
            "is headless, and --enable-aggregator-routing=false dials cluster IPs",
        )),
        "" => endpoints(service, slices, reference),
        ip => {
            port_name(service, reference)?;
            Ok(vec![Target { host: ip.to_owned(), port: reference.port }])
        }
    }
}

fn endpoints(
    service: &ServiceFacts,
    slices: &[&SliceFacts],
    reference: &ServiceReference,
) -> Result<Vec<Target>, ResolveError> {
    let port = port_name(service, reference)?;
    if slices.is_empty() {
        return Err(resolve_error(
            ENDPOINTS_NOT_FOUND,
            format!("cannot find endpointslices for {}", format_reference(reference)),
        ));
    }
    let mut sorted: Vec<&SliceFacts> = slices.to_vec();
    sorted.sort_by(|a, b| {
        (a.family.rank(service.family), &a.name).cmp(&(b.family.rank(service.family), &b.name))
    });
    let (preferred, other_families): (Vec<_>, Vec<_>) =
        sorted.into_iter().partition(|s| s.family == service.family.unwrap_or(s.family));
    for slices in [preferred, other_families] {
        let mut targets: Vec<Target> = Vec::new();
        for target in slices.iter().flat_map(|slice| slice.targets(port)) {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        if !targets.is_empty() {
            return Ok(targets);
        }
    }
    let message = format!(
        "endpointslices for {} have no addresses with port name {port:?}",
        format_reference(reference)
    );
    Err(resolve_error(MISSING_ENDPOINTS, message))
}

/// Returns the name that slices use for the port.
fn port_name<'a>(service: &'a ServiceFacts, reference: &ServiceReference) -> Result<&'a str, ResolveError> {
    service.ports.iter().find(|p| p.port == reference.port).map(|p| p.name.as_str()).ok_or_else(|| {
        let message = format!("{} is not listening on port {}", format_reference(reference), reference.port);
        resolve_error(SERVICE_PORT_ERROR, message)
    })
}

/// Returns the error for a Service that does not exist.
#[must_use]
pub fn service_not_found(reference: &ServiceReference) -> ResolveError {
    resolve_error(SERVICE_NOT_FOUND, format!("{} is not present", format_reference(reference)))
}

/// Formats a reference for messages.
#[must_use]
pub fn format_reference(reference: &ServiceReference) -> String {
    format!("service/{} in {:?}", reference.name, reference.namespace)
}

fn discovery_check_error(reference: &ServiceReference, reason: &str) -> ResolveError {
    resolve_error(FAILED_DISCOVERY_CHECK, format!("{} {reason}", format_reference(reference)))
}

fn resolve_error(reason: &str, message: String) -> ResolveError {
    ResolveError { reason: reason.to_owned(), message }
}

#[cfg(test)]
mod tests;
