//! Resource names, quantities, limits and requests: of containers, of the whole pod, of claims.

use std::collections::HashSet;

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, Quantity, names};

use super::annotations::MIRROR;
use super::parts::Of;
use super::totals::together;
use crate::Errors;
use crate::{checks, values};

const STANDARD_FOR_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Further names without a domain whose amounts need not be whole.
const STANDARD_ELSEWHERE: [&str; 8] = [
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
const HUGE: &str = "hugepages-";

/// Whether a name is one that a container's resources may have without a domain.
pub fn is_standard_container_resource(name: &str) -> bool {
    STANDARD_FOR_CONTAINERS.contains(&name) || name.starts_with(HUGE)
}

/// Whether a name means something to upstream itself.
pub fn is_standard(name: &str) -> bool {
    is_standard_container_resource(name)
        || STANDARD_ELSEWHERE.contains(&name)
        || COUNTED.contains(&name)
        || name.starts_with("requests.hugepages-")
}

/// Whether a name is of somebody else's resource: with a domain that is not upstream's.
pub fn is_extended(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    !native && !name.starts_with("requests.") && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Names without a domain whose amounts are whole numbers.
pub const COUNTED: [&str; 9] = [
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

/// Whether the amounts of a resource are whole numbers.
pub fn is_counted(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

/// The name of a resource anywhere: qualified, or standard.
pub fn resource_name(name: &str, path: &Path, errors: &mut Errors) -> bool {
    let diagnostics = names::qualified_name(name);
    if !diagnostics.is_empty() {
        errors.extend(diagnostics.iter().map(|m| Error::invalid(path, name, m)));
        return false;
    }
    if !name.contains('/') && !is_standard(name) {
        errors.push(Error::invalid(path, name, "must be a standard resource type or fully qualified"));
    }
    true
}

/// The name of a resource of a container.
pub fn container_resource_name(name: &str, path: &Path, errors: &mut Errors) {
    resource_name(name, path, errors);
    if !name.contains('/') {
        if !is_standard_container_resource(name) {
            errors.push(Error::invalid(path, name, "must be a standard resource for containers"));
        }
    } else if !name.contains("kubernetes.io/") && !is_extended(name) {
        errors.push(Error::invalid(path, name, "doesn't follow extended resource name standard"));
    }
}

/// The amount of a resource: not negative, and whole where it is counted.
pub fn amount(name: &str, value: &Cursor<'_>, errors: &mut Errors) {
    let quantity = value.quantity().unwrap_or_default();
    if quantity.is_negative() {
        errors.push(Error::invalid(&value.path(), quantity.to_string(), checks::NOT_NEGATIVE));
    }
    if is_counted(name) && !quantity.is_whole() {
        errors.push(Error::invalid(&value.path(), quantity.to_string(), "must be an integer"));
    }
    if let Some(size) = name.strip_prefix(HUGE) {
        let size = Quantity::lenient(size).value();
        let amount = quantity.value();
        if !quantity.is_whole() || size == 0 || amount % size != 0 {
            let text = format!("{quantity} is not positive integer multiple of {name}");
            errors.push(Error::invalid_printed(&value.path(), &value.printed(), &text));
        }
    }
}

/// The resources of a container.
pub(super) fn of_container(container: &Cursor<'_>, spec: &Cursor<'_>, errors: &mut Errors) {
    container_resources(&container.field("resources"), &known_claims(spec), errors);
}

/// Names of the claims of a pod.
fn known_claims<'a>(spec: &Cursor<'a>) -> Vec<&'a str> {
    let claims = spec.field("resourceClaims");
    let mut names: Vec<_> = claims.items().map(|claim| claim.field("name").str()).collect();
    names.retain(|name| !name.is_empty());
    names.sort_unstable();
    names
}

/// Limits, requests and claims.
pub fn container_resources(resources: &Cursor<'_>, claims: &[&str], errors: &mut Errors) {
    let (limits, requests) = (resources.field("limits"), resources.field("requests"));
    let (mut huge, mut cpu_or_memory) = (false, false);
    for (name, value) in limits.entries() {
        container_resource_name(name, &value.path(), errors);
        amount(name, &value, errors);
        huge |= name.starts_with(HUGE);
        cpu_or_memory |= matches!(name, "cpu" | "memory");
    }
    for (name, request) in requests.entries() {
        container_resource_name(name, &request.path(), errors);
        amount(name, &request, errors);
        against_limit(name, &request, &requests, &limits, errors);
        huge |= name.starts_with(HUGE);
        cpu_or_memory |= matches!(name, "cpu" | "memory");
    }
    if huge && !cpu_or_memory {
        errors.push(resources.forbidden("HugePages require cpu or memory"));
    }
    claim_names(&resources.field("claims"), claims, errors);
}

fn is_overcommittable(name: &str) -> bool {
    !is_extended(name) && !name.starts_with(HUGE)
}

fn against_limit(
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

fn claim_names(claims: &Cursor<'_>, known: &[&str], errors: &mut Errors) {
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
        if !known.contains(&name) {
            let text = if known.is_empty() {
                "must be one of the names in pod.spec.resourceClaims which is empty".to_owned()
            } else {
                format!("must be one of the names in pod.spec.resourceClaims: {}", known.join(", "))
            };
            let mut error = Error::not_found(&claim.path(), name);
            error.body = format!("{}: {text}", error.body);
            errors.push(error);
        }
    }
}

/// Resources of the runtime itself, which upstream validates as the limits of a container at `base`.
pub fn overhead(overhead: &Cursor<'_>, base: &Path, errors: &mut Errors) {
    let path = base.child("limits");
    let (mut huge, mut cpu_or_memory) = (false, false);
    for (name, value) in overhead.entries() {
        huge |= name.starts_with(HUGE);
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

/// `spec.resourceClaims`.
pub(super) fn pod_claims(claims: &Cursor<'_>, of: Of<'_>, errors: &mut Errors) {
    let is_static = matches!(of, Of::Pod(pod) if pod.annotation(MIRROR).is_some());
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
            checks::follows(&name, values::label, errors);
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
                checks::follows(&reference, names::dns1123_subdomain, errors);
            }
        }
    }
}

/// Resources of the pod as a whole, and how its containers fit into them.
pub(super) fn pod_level(spec: &Cursor<'_>, errors: &mut Errors) {
    let resources = spec.field("resources");
    if spec.field("os").field("name").str() == "windows" {
        errors.push(resources.forbidden("may not be set for a windows pod"));
        return;
    }
    if resources.field("claims").is_present() {
        errors.push(resources.field("claims").forbidden("claims may not be set for Resources at pod-level"));
    }
    claim_names(&resources.field("claims"), &known_claims(spec), errors);
    let (limits, requests) = (resources.field("limits"), resources.field("requests"));
    for (name, value) in limits.entries() {
        pod_level_name(name, &value.path(), errors);
        amount(name, &value, errors);
    }
    for (name, request) in requests.entries() {
        pod_level_name(name, &request.path(), errors);
        amount(name, &request, errors);
        against_limit(name, &request, &requests, &limits, errors);
    }
    containers_fit(spec, &resources, errors);
}

fn pod_level_name(name: &str, path: &Path, errors: &mut Errors) {
    let before = errors.len();
    resource_name(name, path, errors);
    if errors.len() == before && !matches!(name, "cpu" | "memory") && !name.starts_with(HUGE) {
        errors.push(Error::not_supported(path, name, &["cpu", HUGE, "memory"]));
    }
}

fn containers_fit(spec: &Cursor<'_>, resources: &Cursor<'_>, errors: &mut Errors) {
    let (limits, requests) = (resources.field("limits"), resources.field("requests"));
    for (name, request) in requests.entries() {
        let Some(sum) = total(spec, "requests", name) else { continue };
        let quantity = request.quantity().unwrap_or_default();
        if sum > quantity {
            let text = format!("must be greater than or equal to aggregate container requests of {sum}");
            errors.push(Error::invalid(&request.path(), quantity.to_string(), &text));
        }
    }
    for (name, limit) in limits.entries() {
        let quantity = limit.quantity().unwrap_or_default();
        if name.starts_with(HUGE) {
            if let Some(sum) = total(spec, "limits", name).filter(|sum| *sum > quantity) {
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

/// Sum of a resource (`requests` or `limits`) over all containers, if any of them names it.
pub fn total(spec: &Cursor<'_>, list: &'static str, name: &str) -> Option<Quantity> {
    let of = |container: &Cursor<'_>| {
        let amount = container.field("resources").field(list).key(name).quantity();
        amount.map(|amount| (name.to_owned(), amount)).into_iter().collect()
    };
    together(spec, of).remove(name)
}
