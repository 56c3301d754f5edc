//! Resource claims in the status of a pod: claims generated for the pod, and claims for extended resources.

use std::collections::HashSet;

use portico_machinery::{Cursor, Object, names};

use portico_validation::{Errors, checks};

const NODE_ALLOCATABLE: [&str; 2] = ["status", "nodeAllocatableResourceClaimStatuses"];
const NO_SUCH_CONTAINER: &str =
    "must match the name of an entry in spec.initContainers.name or spec.containers.name";
const NO_SUCH_RESOURCE: &str = "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests";

/// Drops a field whose feature gate is off, unless the old object has it.
pub(super) fn drop_disabled(new: &mut Object, old: &Object) {
    if old.at(&NODE_ALLOCATABLE).is_empty() {
        new.remove(&NODE_ALLOCATABLE);
    }
}

pub(super) fn validate(new: &Object, errors: &mut Errors) {
    validate_generated(new, errors);
    let extended = new.at(&["status", "extendedResourceClaimStatus"]);
    if extended.is_present() {
        validate_extended_resources(new, &extended, errors);
    }
}

fn validate_generated(new: &Object, errors: &mut Errors) {
    let claim_names: HashSet<&str> =
        new.at(&["spec", "resourceClaims"]).items().map(|claim| claim.field("name").str()).collect();
    let mut seen = HashSet::new();
    for status in new.at(&["status", "resourceClaimStatuses"]).items() {
        let name = status.field("name");
        if !claim_names.contains(name.str()) {
            errors.push(name.invalid("must match the name of an entry in `spec.resourceClaims`"));
        }
        if !seen.insert(name.str()) {
            errors.push(name.duplicate());
        }
        if status.field("resourceClaimName").is_present() {
            checks::matches_rule(&status.field("resourceClaimName"), names::dns1123_subdomain, errors);
        }
    }
}

fn validate_extended_resources(new: &Object, status: &Cursor<'_>, errors: &mut Errors) {
    let mappings = status.field("requestMappings");
    if mappings.is_empty() {
        errors.push(mappings.required("at least one request mapping is required"));
    }
    let mut seen = HashSet::new();
    for mapping in mappings.items() {
        let parts = ["containerName", "resourceName", "requestName"].map(|field| mapping.field(field));
        let [container, resource, request] = &parts;
        match container_named(new, container.str()) {
            None => errors.push(container.invalid_text(NO_SUCH_CONTAINER)),
            Some(found) => {
                if found.field("resources").field("requests").entry_str(resource.str()).is_none() {
                    errors.push(resource.invalid_text(NO_SUCH_RESOURCE));
                }
            }
        }
        // As upstream, the error has the path of the parent of the mappings.
        let path = status.path().child("requestName");
        errors.extend(names::to_field_errors(&path, request.str(), names::dns1123_label(request.str())));
        if !seen.insert(parts.each_ref().map(Cursor::str)) {
            errors.extend(parts.iter().map(Cursor::duplicate));
        }
    }
    checks::required(&status.field("resourceClaimName"), names::dns1123_subdomain, errors);
}

fn container_named<'a>(pod: &'a Object, name: &str) -> Option<Cursor<'a>> {
    let spec = pod.at(&["spec"]);
    ["containers", "initContainers"]
        .iter()
        .find_map(|list| spec.field(list).items().find(|container| container.field("name").str() == name))
}
