//! Annotations of pods that mean something: mirror pods, deletion cost, profiles of seccomp and AppArmor.

use std::collections::HashSet;

use portico_machinery::Cursor;
use portico_machinery::field::{Error, Path};

use super::parts::all_containers;
use crate::Errors;

/// Marks the mirror of a static pod.
pub const MIRROR: &str = "kubernetes.io/config.mirror";
/// The AppArmor profile of a container, before there was a field.
pub const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
pub const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Validates what annotations say; `path` is where diagnostics stand.
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
            if !is_seccomp(value) {
                errors.push(Error::invalid(&path.child(key), value, "must be a valid seccomp profile"));
            }
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

fn is_seccomp(value: &str) -> bool {
    match value.strip_prefix("localhost/") {
        Some(path) => !path.starts_with('/') && !path.split('/').any(|part| part == ".."),
        None => matches!(value, "runtime/default" | "docker/default" | "unconfined"),
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

/// An annotation and the field that took its place must say the same.
pub fn validate_profiles_agree(annotations: &Cursor<'_>, spec: &Cursor<'_>, errors: &mut Errors) {
    if let Some(annotation) = annotations.entry_str(SECCOMP_POD) {
        agree(&spec.field("securityContext").field("seccompProfile"), annotation, "seccomp", errors);
    }
    for container in all_containers(spec) {
        let name = container.field("name").str();
        for (prefix, field, word) in
            [(SECCOMP_CONTAINER, "seccompProfile", "seccomp"), (APPARMOR, "appArmorProfile", "apparmor")]
        {
            if let Some(annotation) = annotations.entry_str(&format!("{prefix}{name}")) {
                agree(&container.field("securityContext").field(field), annotation, word, errors);
            }
        }
    }
}

fn agree(profile: &Cursor<'_>, annotation: &str, word: &str, errors: &mut Errors) {
    if !profile.is_present() {
        return;
    }
    let (kind, local) = match annotation.strip_prefix("localhost/") {
        Some(local) => ("Localhost", Some(local)),
        None if annotation == "unconfined" => ("Unconfined", None),
        None => ("RuntimeDefault", None),
    };
    if profile.field("type").str() != kind {
        let text = format!("{word} type in annotation and field must match");
        errors.push(profile.field("type").forbidden(&text));
    } else if local.is_some_and(|local| profile.field("localhostProfile").str() != local) {
        let text = format!("{word} profile in annotation and field must match");
        errors.push(profile.field("localhostProfile").forbidden(&text));
    }
}
