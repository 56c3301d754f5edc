//! Validation of `os`: fields that Linux pods and Windows pods may not set.

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::parts::all_containers;
use super::privileges::HOST_PROCESS;
use crate::Errors;

const NOT_ON_LINUX: &str = "windows options cannot be set for a linux pod";
const NOT_ON_WINDOWS: &str = "cannot be set for a windows pod";
/// Fields that a Windows pod may not set, in upstream's order. True for fields of the security context,
/// false for fields of the spec.
const WINDOWS_POD: [(bool, &str); 15] = [
    (true, "appArmorProfile"),
    (true, "seLinuxOptions"),
    (false, "hostUsers"),
    (false, "hostPID"),
    (false, "hostIPC"),
    (true, "seccompProfile"),
    (true, "fsGroup"),
    (true, "fsGroupChangePolicy"),
    (true, "sysctls"),
    (false, "shareProcessNamespace"),
    (true, "runAsUser"),
    (true, "runAsGroup"),
    (true, "supplementalGroups"),
    (true, "supplementalGroupsPolicy"),
    (true, "seLinuxChangePolicy"),
];
const WINDOWS_CONTAINER: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Validates `os`, and that no unsupported fields are set.
pub(super) fn validate(spec: &Cursor<'_>, errors: &mut Errors) {
    let os = spec.field("os");
    if !os.is_present() {
        return;
    }
    match os.field("name").str() {
        "" => errors.push(os.field("name").required("")),
        "linux" => linux(spec, errors),
        "windows" => windows(spec, errors),
        other => errors.push(Error::not_supported(&os.path(), other, &["linux", "windows"])),
    }
}

fn linux(spec: &Cursor<'_>, errors: &mut Errors) {
    let contexts = std::iter::once(spec.clone()).chain(all_containers(spec));
    for options in contexts.map(|at| at.field("securityContext").field("windowsOptions")) {
        if options.is_present() {
            errors.push(options.forbidden(NOT_ON_LINUX));
        }
    }
}

fn windows(spec: &Cursor<'_>, errors: &mut Errors) {
    let context = spec.field("securityContext");
    for (in_context, field) in WINDOWS_POD {
        let value = if in_context { context.field(field) } else { spec.field(field) };
        let is_set = match field {
            "hostPID" | "hostIPC" => value.bool(),
            "sysctls" => !value.is_empty(),
            _ => value.is_present(),
        };
        if is_set {
            errors.push(value.forbidden(NOT_ON_WINDOWS));
        }
    }
    for context in all_containers(spec).iter().map(|container| container.field("securityContext")) {
        for field in WINDOWS_CONTAINER {
            if context.field(field).is_present() {
                errors.push(context.field(field).forbidden(NOT_ON_WINDOWS));
            }
        }
    }
}

/// Requires that either all containers of a Windows pod are host process containers, or none.
pub(super) fn host_process(spec: &Cursor<'_>, errors: &mut Errors) {
    let host_process_of =
        |at: &Cursor<'_>| at.field("securityContext").field("windowsOptions").field("hostProcess").opt_bool();
    let pod = host_process_of(spec);
    let containers = all_containers(spec);
    let mut on_host = 0;
    for container in &containers {
        let container_value = host_process_of(container);
        if let (Some(own), Some(pod)) = (container_value, pod)
            && own != pod
        {
            let text = format!("pod hostProcess value must be identical if both are specified, was {pod}");
            let field = container.field("securityContext").field("windowsOptions").field("hostProcess");
            errors.push(field.invalid(&text));
        }
        on_host += usize::from(container_value.or(pod).unwrap_or(false));
    }
    if on_host == 0 {
        return;
    }
    if on_host < containers.len() {
        let text =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(Error::invalid(&spec.path(), "", text));
    }
    if !spec.field("hostNetwork").bool() {
        let path = spec.path().child("hostNetwork");
        errors.push(Error::invalid(
            &path,
            false,
            "hostNetwork must be true if pod contains any hostProcess containers",
        ));
    }
    errors.push(Error::forbidden(&spec.path(), HOST_PROCESS));
}
