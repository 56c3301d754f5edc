//! Validation of PersistentVolumeClaims that pods create and use, and of the spec of a claim.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use crate::Errors;
use crate::pod_spec::SpecOwner;
use crate::{checks, label_selector, validate_labels, values};

/// Access modes of a volume.
pub const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Validates the template of a claim that is created for the pod.
pub(super) fn ephemeral(source: &Cursor<'_>, volume: &Cursor<'_>, owner: SpecOwner<'_>, errors: &mut Errors) {
    let template = source.field("volumeClaimTemplate");
    if !template.is_present() {
        errors.push(template.required(""));
        return;
    }
    let metadata = template.field("metadata");
    crate::validate_annotations(&metadata.field("annotations"), errors);
    validate_labels(&metadata.field("labels"), errors);
    for (key, value) in metadata.entries() {
        if !matches!(key, "labels" | "annotations") && value.is_present() {
            errors.push(metadata.field(key).forbidden("cannot be set"));
        }
    }
    validate_claim_spec(&template.field("spec"), errors);
    let name = volume.field("name");
    if let Some(claim) = created_claim(volume, owner) {
        for text in names::dns1123_subdomain(&claim) {
            errors.push(Error::invalid(&name.path(), name.str(), &format!("PVC name {claim:?}: {text}")));
        }
    }
}

/// Returns the name of the claim that is created for a volume of a pod, if both have names.
fn created_claim(volume: &Cursor<'_>, owner: SpecOwner<'_>) -> Option<String> {
    let (SpecOwner::Pod(pod), name) = (owner, volume.field("name").str()) else { return None };
    (!pod.name().is_empty() && !name.is_empty()).then(|| format!("{}-{name}", pod.name()))
}

/// Returns the names of the claims that are created for the pod, which its other volumes may not use.
pub(super) fn created_claims(list: &Cursor<'_>, owner: SpecOwner<'_>) -> HashSet<String> {
    let ephemeral = list.items().filter(|volume| volume.field("ephemeral").is_present());
    ephemeral.filter_map(|volume| created_claim(&volume, owner)).collect()
}

/// Validates the spec of a claim, in a PersistentVolumeClaim or in a template.
pub fn validate_claim_spec(spec: &Cursor<'_>, errors: &mut Errors) {
    let modes = spec.field("accessModes");
    if modes.is_empty() {
        errors.push(modes.required("at least 1 access mode is required"));
    }
    label_selector(&spec.field("selector"), errors);
    access_modes(&modes, errors);
    storage_request(spec, errors);
    checks::optional(&spec.field("storageClassName"), names::dns1123_subdomain, errors);
    checks::one_of(&spec.field("volumeMode"), &["Block", "Filesystem"], errors);
    checks::optional(&spec.field("volumeAttributesClassName"), names::dns1123_subdomain, errors);
    sources(spec, errors);
}

/// Requires known modes. `ReadWriteOncePod` excludes all other modes.
pub fn access_modes(modes: &Cursor<'_>, errors: &mut Errors) {
    let path = modes.path();
    for mode in modes.items().filter(|mode| !ACCESS_MODES.contains(&mode.str())) {
        errors.push(Error::not_supported(&path, mode.str(), &ACCESS_MODES));
    }
    let once = modes.items().any(|mode| mode.str() == "ReadWriteOncePod");
    let other = |mode: Cursor<'_>| mode.str() != "ReadWriteOncePod" && ACCESS_MODES.contains(&mode.str());
    if once && modes.items().any(other) {
        errors.push(Error::forbidden(&path, "may not use ReadWriteOncePod with other access modes"));
    }
}

fn storage_request(spec: &Cursor<'_>, errors: &mut Errors) {
    let resources = spec.field("resources");
    // Upstream omits `requests` in the path.
    let path = resources.path().key("storage");
    match resources.field("requests").key("storage").quantity() {
        None => errors.push(Error::required(&path, "")),
        Some(quantity) if !quantity.is_positive() => {
            errors.push(Error::invalid(&path, quantity.to_string(), "must be greater than zero"));
        }
        Some(_) => {}
    }
}

fn sources(spec: &Cursor<'_>, errors: &mut Errors) {
    for field in ["dataSource", "dataSourceRef"] {
        let source = spec.field(field);
        if !source.is_present() {
            continue;
        }
        checks::not_empty(&source.field("name"), errors);
        checks::not_empty(&source.field("kind"), errors);
        let (group, kind) = (source.field("apiGroup"), source.field("kind").str());
        if group.str().is_empty() && kind != "PersistentVolumeClaim" {
            let text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(Error::invalid(&source.path(), kind, text));
        }
        checks::optional(&group, names::dns1123_subdomain, errors);
        if field == "dataSourceRef" {
            checks::optional(&source.field("namespace"), values::label, errors);
        }
    }
    let (source, reference) = (spec.field("dataSource"), spec.field("dataSourceRef"));
    let differs = |field: &str| !source.field(field).same_as(&reference.field(field));
    let text = if !reference.field("namespace").str().is_empty() {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if ["apiGroup", "kind", "name"].iter().any(|field| differs(field)) {
        "must match dataSourceRef"
    } else {
        return;
    };
    if source.is_present() && reference.is_present() {
        // Upstream prints the path where the value is meant.
        errors.push(spec.invalid_as("{}", text));
    }
}
