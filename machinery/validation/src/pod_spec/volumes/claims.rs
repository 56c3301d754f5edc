//! Persistent volume claims as pods make and use them, and the rules of a claim's spec.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use crate::Errors;
use crate::{checks, label_selector, validate_labels};

/// Ways to mount a volume.
pub const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// A claim that is made for the pod.
pub(super) fn ephemeral(source: &Cursor<'_>, volume: &Cursor<'_>, errors: &mut Errors) {
    let template = source.field("volumeClaimTemplate");
    if !template.is_present() {
        errors.push(template.required(""));
        return;
    }
    let metadata = template.field("metadata");
    for (key, value) in metadata.entries() {
        if !matches!(key, "labels" | "annotations") && value.is_present() {
            errors.push(metadata.field(key).forbidden("cannot be set"));
        }
    }
    validate_labels(&metadata.field("labels"), errors);
    crate::validate_annotations(&metadata.field("annotations"), errors);
    validate_claim_spec(&template.field("spec"), errors);
    let name = volume.field("name");
    if !name.str().is_empty() {
        // The pod's name comes in front; it is a subdomain already.
        let claim = format!("pod-{}", name.str());
        let diagnostics = names::dns1123_subdomain(&claim);
        for text in diagnostics {
            let text = format!("PVC name {claim:?}: {text}");
            errors.push(Error::invalid(&name.path(), name.str(), &text));
        }
    }
}

/// Claims that are made for this pod are not used by another of its volumes.
pub(super) fn no_conflicts(list: &Cursor<'_>, errors: &mut Errors) {
    // The name of the pod is two steps up; templates have none and conflict with nothing.
    let made: Vec<&str> = list
        .items()
        .filter(|volume| volume.field("ephemeral").is_present())
        .map(|volume| volume.field("name").str())
        .collect();
    for volume in list.items() {
        let claim = volume.field("persistentVolumeClaim").field("claimName");
        let own = |name: &&str| !name.is_empty() && claim.str().ends_with(&format!("-{name}"));
        if made.iter().any(own) && list.path().as_str() == "spec.volumes" {
            errors.push(claim.invalid("must not reference a PVC that gets created for an ephemeral volume"));
        }
    }
}

/// The spec of a claim, in a claim of its own or in a template.
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

/// Known modes, and the one that excludes all others.
pub fn access_modes(modes: &Cursor<'_>, errors: &mut Errors) {
    let path = modes.path();
    for mode in modes.items().filter(|mode| !ACCESS_MODES.contains(&mode.str())) {
        errors.push(Error::not_supported(&path, mode.str(), &ACCESS_MODES));
    }
    let once = modes.items().any(|mode| mode.str() == "ReadWriteOncePod");
    if once && modes.items().any(|mode| mode.str() != "ReadWriteOncePod") {
        errors.push(Error::forbidden(&path, "may not use ReadWriteOncePod with other access modes"));
    }
}

fn storage_request(spec: &Cursor<'_>, errors: &mut Errors) {
    let resources = spec.field("resources");
    // Upstream leaves out the step between.
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
    }
    let (source, reference) = (spec.field("dataSource"), spec.field("dataSourceRef"));
    if source.is_present() && reference.is_present() && !source.same_as(&reference) {
        errors.push(spec.invalid("must match dataSourceRef"));
    }
}
