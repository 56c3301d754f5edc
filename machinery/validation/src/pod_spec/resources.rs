//! Validation of resource names, quantities, limits and requests of containers, pods and claims.

use std::collections::HashSet;

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, Quantity, names};

use super::annotations::MIRROR;
use super::parts::SpecOwner;
use super::totals::aggregate_containers;
use crate::Errors;
use crate::{checks, values};

const STANDARD_CONTAINER_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Other names without a domain whose amounts need not be integers.
const OTHER_STANDARD_RESOURCES: [&str; 8] = [
    "storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "requests.storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];
/// Prefix of the resources of huge pages.
const HUGE_PAGES_PREFIX: &str = "hugepages-";

/// True if the name is valid in the resources of a container without a domain.
pub fn is_standard_container_resource(name: &str) -> bool {
    STANDARD_CONTAINER_RESOURCES.contains(&name) || name.starts_with(HUGE_PAGES_PREFIX)
}

/// True if upstream defines the resource name.
pub fn is_standard_resource(name: &str) -> bool {
    is_standard_container_resource(name)
        || OTHER_STANDARD_RESOURCES.contains(&name)
        || INTEGER_RESOURCES.contains(&name)
        || name.starts_with("requests.hugepages-")
}

/// True for an extended resource: a name with a domain that is not one of upstream's domains.
pub fn is_extended_resource(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    !native && !name.starts_with("requests.") && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Resource names without a domain whose amounts are integers.
pub const INTEGER_RESOURCES: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "services.nodeports",
    "services.loadbalancers",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
];

/// True if the amounts of a resource are integers (upstream's `IsIntegerResourceName`).
pub fn is_integer_resource(name: &str) -> bool {
    INTEGER_RESOURCES.contains(&name) || is_extended_resource(name)
}

/// Validates the name of a resource: qualified, or standard. Returns false for a name that is not qualified.
pub fn resource_name(name: &str, path: &Path, errors: &mut Errors) -> bool {
    let diagnostics = names::qualified_name(name);
    if !diagnostics.is_empty() {
        errors.extend(diagnostics.iter().map(|m| Error::invalid(path, name, m)));
        return false;
    }
    if !name.contains('/') && !is_standard_resource(name) {
        errors.push(Error::invalid(path, name, "must be a standard resource type or fully qualified"));
    }
    true
}

/// Validates the name of a resource of a container.
pub fn container_resource_name(name: &str, path: &Path, errors: &mut Errors) {
    resource_name(name, path, errors);
    if !name.contains('/') {
        if !is_standard_container_resource(name) {
            errors.push(Error::invalid(path, name, "must be a standard resource for containers"));
        }
    } else if !name.contains("kubernetes.io/") && !is_extended_resource(name) {
        errors.push(Error::invalid(path, name, "doesn't follow extended resource name standard"));
    }
}

/// Validates the amount of a resource: not negative, and an integer if the resource requires it.
pub fn amount(name: &str, value: &Cursor<'_>, errors: &mut Errors) {
    let quantity = value.quantity().unwrap_or_default();
    if quantity.is_negative() {
        errors.push(Error::invalid(&value.path(), quantity.to_string(), checks::NOT_NEGATIVE));
    }
    if is_integer_resource(name) && !quantity.is_whole() {
        errors.push(Error::invalid(&value.path(), quantity.to_string(), "must be an integer"));
    }
    if let Some(size) = name.strip_prefix(HUGE_PAGES_PREFIX) {
        let size = Quantity::lenient(size).value();
        let amount = quantity.value();
        if !quantity.is_whole() || size == 0 || amount % size != 0 {
            let text = format!("{quantity} is not positive integer multiple of {name}");
            errors.push(Error::invalid_printed(&value.path(), &value.printed(), &text));
        }
    }
}

/// Validates the resources of a container.
pub(super) fn validate_container(container: &Cursor<'_>, spec: &Cursor<'_>, errors: &mut Errors) {
    container_resources(&container.field("resources"), &pod_claim_names(spec), errors);
}

/// Returns the sorted names of the claims of a pod.
fn pod_claim_names<'a>(spec: &Cursor<'a>) -> Vec<&'a str> {
    let claims = spec.field("resourceClaims");
    let mut names: Vec<_> = claims.items().map(|claim| claim.field("name").str()).collect();
    names.retain(|name| !name.is_empty());
    names.sort_unstable();
    names
}

/// Validates limits, requests and claims.
pub fn container_resources(resources: &Cursor<'_>, claims: &[&str], errors: &mut Errors) {
    let (limits, requests) = (resources.field("limits"), resources.field("requests"));
    let (mut huge, mut cpu_or_memory) = (false, false);
    for (name, value) in limits.entries() {
        container_resource_name(name, &value.path(), errors);
        amount(name, &value, errors);
        huge |= name.starts_with(HUGE_PAGES_PREFIX);
        cpu_or_memory |= matches!(name, "cpu" | "memory");
    }
    for (name, request) in requests.entries() {
        container_resource_name(name, &request.path(), errors);
        amount(name, &request, errors);
        check_request_limit(name, &request, &requests, &limits, errors);
        huge |= name.starts_with(HUGE_PAGES_PREFIX);
        cpu_or_memory |= matches!(name, "cpu" | "memory");
    }
    if huge && !cpu_or_memory {
        errors.push(resources.forbidden("HugePages require cpu or memory"));
    }
    claim_names(&resources.field("claims"), claims, errors);
}

fn is_overcommittable(name: &str) -> bool {
    !is_extended_resource(name) && !name.starts_with(HUGE_PAGES_PREFIX)
}

fn check_request_limit(
    name: &str,
    request: &Cursor<'_>,
    requests: &Cursor<'_>,
    limits: &Cursor<'_>,
    errors: &mut Errors,
) {
    let quantity = request.quantity().unwrap_or_default();
    let Some(limit) = limits.key(name).quantity() else {
        if !is_overcommittable(name) {
            errors.push(limits.required("Limit must be set for non overcommitable resources"));
        }
        return;
    };
    let text = if !is_overcommittable(name) && quantity != limit {
        format!("must be equal to {name} limit of {limit}")
    } else if quantity > limit {
        format!("must be less than or equal to {name} limit of {limit}")
    } else {
        return;
    };
    errors.push(Error::invalid(&requests.path(), quantity.to_string(), &text));
}

fn claim_names(claims: &Cursor<'_>, declared: &[&str], errors: &mut Errors) {
    let (mut seen, mut named) = (HashSet::new(), HashSet::new());
    for claim in claims.items() {
        let (name, request) = (claim.field("name").str(), claim.field("request").str());
        if name.is_empty() {
            errors.push(claim.required(""));
            continue;
        }
        checks::optional(&claim.field("request"), values::label, errors);
        let whole_or_same = seen.contains(&(name, "")) || seen.contains(&(name, request));
        if whole_or_same || (request.is_empty() && named.contains(name)) {
            let claimed = if request.is_empty() { name.to_owned() } else { format!("{name}/{request}") };
            errors.push(Error::duplicate(&claim.path(), &claimed));
        }
        seen.insert((name, request));
        named.insert(name);
        if !declared.contains(&name) {
            let text = if declared.is_empty() {
                "must be one of the names in pod.spec.resourceClaims which is empty".to_owned()
            } else {
                format!("must be one of the names in pod.spec.resourceClaims: {}", declared.join(", "))
            };
            let mut error = Error::not_found(&claim.path(), name);
            error.body = format!("{}: {text}", error.body);
            errors.push(error);
        }
    }
}

/// Validates the overhead of a runtime, which upstream validates as the limits of a container at `base`.
pub fn overhead(overhead: &Cursor<'_>, base: &Path, errors: &mut Errors) {
    let path = base.child("limits");
    let (mut huge, mut cpu_or_memory) = (false, false);
    for (name, value) in overhead.entries() {
        huge |= name.starts_with(HUGE_PAGES_PREFIX);
        cpu_or_memory |= matches!(name, "cpu" | "memory");
        let mut found = Errors::new();
        container_resource_name(name, &value.path(), &mut found);
        amount(name, &value, &mut found);
        for mut error in found {
            error.path = path.key(name);
            errors.push(error);
        }
    }
    if huge && !cpu_or_memory {
        errors.push(Error::forbidden(base, "HugePages require cpu or memory"));
    }
}

/// Validates `spec.resourceClaims`.
pub(super) fn pod_claims(claims: &Cursor<'_>, owner: SpecOwner<'_>, errors: &mut Errors) {
    let is_static = matches!(owner, SpecOwner::Pod(pod) if pod.annotation(MIRROR).is_some());
    let mut names = HashSet::new();
    for claim in claims.items() {
        if is_static {
            errors.push(Error::forbidden(&"[]".into(), "static pods do not support resource claims"));
            continue;
        }
        let name = claim.field("name");
        if name.str().is_empty() {
            errors.push(name.required(""));
        } else if !names.insert(name.str()) {
            errors.push(name.duplicate());
        } else {
            checks::matches_rule(&name, values::label, errors);
        }
        let (direct, template) = (claim.field("resourceClaimName"), claim.field("resourceClaimTemplateName"));
        match (direct.is_present(), template.is_present()) {
            (true, true) => errors.push(claim.invalid(
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            )),
            (false, false) => errors
                .push(claim.invalid("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")),
            _ => {}
        }
        for reference in [direct, template] {
            if reference.is_present() {
                checks::matches_rule(&reference, names::dns1123_subdomain, errors);
            }
        }
    }
}

/// Validates the pod-level resources, and that the resources of the containers fit into them.
pub(super) fn pod_level(spec: &Cursor<'_>, errors: &mut Errors) {
    let resources = spec.field("resources");
    if spec.field("os").field("name").str() == "windows" {
        errors.push(resources.forbidden("may not be set for a windows pod"));
        return;
    }
    if resources.field("claims").is_present() {
        errors.push(resources.field("claims").forbidden("claims may not be set for Resources at pod-level"));
    }
    claim_names(&resources.field("claims"), &pod_claim_names(spec), errors);
    let (limits, requests) = (resources.field("limits"), resources.field("requests"));
    for (name, value) in limits.entries() {
        pod_level_name(name, &value.path(), errors);
        amount(name, &value, errors);
    }
    for (name, request) in requests.entries() {
        pod_level_name(name, &request.path(), errors);
        amount(name, &request, errors);
        check_request_limit(name, &request, &requests, &limits, errors);
    }
    check_containers_fit(spec, &resources, errors);
}

fn pod_level_name(name: &str, path: &Path, errors: &mut Errors) {
    let before = errors.len();
    resource_name(name, path, errors);
    if errors.len() == before && !matches!(name, "cpu" | "memory") && !name.starts_with(HUGE_PAGES_PREFIX) {
        errors.push(Error::not_supported(path, name, &["cpu", HUGE_PAGES_PREFIX, "memory"]));
    }
}

fn check_containers_fit(spec: &Cursor<'_>, resources: &Cursor<'_>, errors: &mut Errors) {
    let (limits, requests) = (resources.field("limits"), resources.field("requests"));
    for (name, request) in requests.entries() {
        let Some(sum) = aggregate_resource(spec, "requests", name) else { continue };
        let quantity = request.quantity().unwrap_or_default();
        if sum > quantity {
            let text = format!("must be greater than or equal to aggregate container requests of {sum}");
            errors.push(Error::invalid(&request.path(), quantity.to_string(), &text));
        }
    }
    for (name, limit) in limits.entries() {
        let quantity = limit.quantity().unwrap_or_default();
        if name.starts_with(HUGE_PAGES_PREFIX) {
            if let Some(sum) = aggregate_resource(spec, "limits", name).filter(|sum| *sum > quantity) {
                let text = format!("must be greater than or equal to aggregate container limits of {sum}");
                errors.push(Error::invalid(&limit.path(), quantity.to_string(), &text));
            }
            continue;
        }
        for (index, container) in spec.field("containers").items().enumerate() {
            let Some(own) = container.field("resources").field("limits").key(name).quantity() else {
                continue;
            };
            if own > quantity {
                let path = resources.path().child("containers").index(index).key(name).child("limits");
                let text = format!("must be less than or equal to pod limits of {quantity}");
                errors.push(Error::invalid(&path, own.to_string(), &text));
            }
        }
    }
}

/// Returns the aggregate of one resource in `list` (`requests` or `limits`) over all containers; `None` if no container has it.
pub fn aggregate_resource(spec: &Cursor<'_>, list: &'static str, name: &str) -> Option<Quantity> {
    let amount_of = |container: &Cursor<'_>| {
        let amount = container.field("resources").field(list).key(name).quantity();
        amount.map(|amount| (name.to_owned(), amount)).into_iter().collect()
    };
    aggregate_containers(spec, amount_of).remove(name)
}
