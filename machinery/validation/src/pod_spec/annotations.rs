//! Annotations of pods with a meaning: mirror pods, deletion cost, seccomp and AppArmor profiles.

use std::collections::HashSet;

use portico_machinery::Cursor;
use portico_machinery::field::{Error, Path};

use super::parts::all_containers;
use crate::Errors;
use crate::paths;

/// Annotation of the mirror of a static pod.
pub const MIRROR: &str = "kubernetes.io/config.mirror";
/// Prefix of the annotation with the AppArmor profile of a container, used before the field existed.
pub const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
pub const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Validates the values of annotations; `path` is the path of errors.
pub fn validate_pod_annotations(
    annotations: &Cursor<'_>,
    spec: &Cursor<'_>,
    path: &Path,
    errors: &mut Errors,
) {
    if annotations.entry_str(MIRROR).is_some() && spec.field("nodeName").str().is_empty() {
        let text = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(Error::invalid(
            &path.key(MIRROR),
            annotations.entry_str(MIRROR).unwrap_or_default(),
            text,
        ));
    }
    let containers = all_containers(spec);
    let containers: HashSet<&str> =
        containers.iter().map(|container| container.field("name").str()).collect();
    for (key, value) in annotations.entries() {
        let value = value.str();
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            seccomp(value, &path.child(key), errors);
        } else if let Some(name) = key.strip_prefix(APPARMOR) {
            apparmor(key, name, value, &containers, path, errors);
        } else if key == DELETION_COST && !is_cost(value) {
            errors.push(Error::invalid(&path.key(key), value, "must be a 32bit integer"));
        }
    }
}

fn is_cost(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    value.parse::<i32>().is_ok()
        && !value.starts_with('+')
        && (digits == "0" || !digits.starts_with('0'))
        && value != "-0"
}

fn seccomp(profile: &str, path: &Path, errors: &mut Errors) {
    match profile.strip_prefix("localhost/") {
        Some(local) => paths::relative_text(local, path, errors),
        None if matches!(profile, "runtime/default" | "docker/default" | "unconfined") => {}
        None => errors.push(Error::invalid(path, profile, "must be a valid seccomp profile")),
    }
}

fn apparmor(
    key: &str,
    name: &str,
    value: &str,
    containers: &HashSet<&str>,
    path: &Path,
    errors: &mut Errors,
) {
    if !containers.contains(name) {
        errors.push(Error::invalid(&path.key(key), name, "container not found"));
    }
    if !(matches!(value, "" | "runtime/default" | "unconfined") || value.starts_with("localhost/")) {
        let text = format!("invalid AppArmor profile name: {value:?}");
        errors.push(Error::invalid(&path.key(key), value, &text));
    }
}

/// Validates that annotations agree with the fields that replaced them.
pub fn validate_profiles_agree(annotations: &Cursor<'_>, spec: &Cursor<'_>, errors: &mut Errors) {
    let context = spec.field("securityContext");
    if let Some(annotation) = annotations.entry_str(SECCOMP_POD) {
        let profile = context.field("seccompProfile");
        agree(&profile, &profile.path(), annotation, "seccomp", errors);
    }
    let containers = all_containers(spec);
    for container in &containers {
        let profile = container.field("securityContext").field("seccompProfile");
        let key = format!("{SECCOMP_CONTAINER}{}", container.field("name").str());
        if let Some(annotation) = annotations.entry_str(&key) {
            agree(&profile, &profile.path(), annotation, "seccomp", errors);
        }
    }
    if spec.field("os").field("name").str() == "windows" {
        return;
    }
    for container in &containers {
        let container_profile = container.field("securityContext").field("appArmorProfile");
        let profile = if container_profile.is_present() {
            container_profile.clone()
        } else {
            context.field("appArmorProfile")
        };
        let key = format!("{APPARMOR}{}", container.field("name").str());
        if let Some(annotation) = annotations.entry_str(&key) {
            agree(&profile, &container_profile.path(), annotation, "apparmor", errors);
        }
    }
}

/// Compares a profile with an annotation. Errors have the path `path`: that of the container, even if the pod has the profile.
fn agree(profile: &Cursor<'_>, path: &Path, annotation: &str, feature: &str, errors: &mut Errors) {
    let local = annotation.strip_prefix("localhost/");
    let same_type = match profile.field("type").str() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => {
            annotation == "runtime/default" || (feature == "seccomp" && annotation == "docker/default")
        }
        "Localhost" => local.is_some(),
        _ => return,
    };
    if !same_type {
        let text = format!("{feature} type in annotation and field must match");
        errors.push(Error::forbidden(&path.child("type"), &text));
    } else if local.is_some() && profile.field("localhostProfile").opt_str() != local {
        let text = format!("{feature} profile in annotation and field must match");
        errors.push(Error::forbidden(&path.child("localhostProfile"), &text));
    }
}
