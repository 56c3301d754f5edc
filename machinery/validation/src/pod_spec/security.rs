//! Validation of security contexts of pods and containers.

use std::borrow::Cow;
use std::collections::HashSet;

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::parts::{all_containers, child_path};
use super::privileges::PRIVILEGED;
use super::windows;
use crate::Errors;
use crate::{checks, paths};

/// Maximum bytes of the name of an AppArmor profile on a node.
const LOCAL_PROFILE_MAX: usize = 4095;
const ID_RANGE: &str = "must be between 0 and 2147483647, inclusive";
const SYSCTL: &str = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
/// Kernel parameters of the IPC namespace.
const IPC_SYSCTLS: [&str; 10] = [
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.msg",
];
const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

fn id(at: &Cursor<'_>, errors: &mut Errors) {
    checks::in_range(at, 0, i64::from(i32::MAX), ID_RANGE, errors);
}

/// Validates the security context of a pod.
pub(super) fn pod(spec: &Cursor<'_>, errors: &mut Errors) {
    let context = spec.field("securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(&context.field(field), errors);
    }
    context.field("supplementalGroups").items().for_each(|group| id(&group, errors));
    if spec.field("shareProcessNamespace").bool() && spec.field("hostPID").bool() {
        let text = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(Error::invalid(&context.path().child("shareProcessNamespace"), true, text));
    }
    sysctls(spec, &context.field("sysctls"), errors);
    checks::one_of(&context.field("fsGroupChangePolicy"), &["Always", "OnRootMismatch"], errors);
    seccomp(&context.field("seccompProfile"), errors);
    windows::options(&context.field("windowsOptions"), errors);
    apparmor(&context.field("appArmorProfile"), errors);
    checks::one_of(&context.field("supplementalGroupsPolicy"), &["Merge", "Strict"], errors);
    checks::one_of(&context.field("seLinuxChangePolicy"), &["Recursive"], errors);
}

fn sysctls(spec: &Cursor<'_>, sysctls: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for sysctl in sysctls.items() {
        let name = sysctl.field("name");
        if name.str().is_empty() {
            errors.push(name.required(""));
        } else if !is_sysctl(name.str()) {
            errors.push(name.invalid(SYSCTL));
        } else if !seen.insert(name.str()) {
            errors.push(name.duplicate());
        }
        let dotted = normalize_sysctl(name.str());
        let ipc = IPC_SYSCTLS.contains(&dotted.as_ref()) || dotted.starts_with("fs.mqueue.");
        for (of_it, field) in [(dotted.starts_with("net."), "hostNetwork"), (ipc, "hostIPC")] {
            if of_it && spec.field(field).bool() {
                errors.push(name.invalid(&format!("may not be specified when '{field}' is true")));
            }
        }
    }
}

/// Normalizes the name of a kernel parameter to dots: if its first separator is a slash, swaps dots and slashes.
fn normalize_sysctl(name: &str) -> Cow<'_, str> {
    if name.find(['.', '/']).is_none_or(|first| name.as_bytes()[first] == b'.') {
        return Cow::Borrowed(name);
    }
    let swapped = name.chars().map(|sign| match sign {
        '/' => '.',
        '.' => '/',
        other => other,
    });
    Cow::Owned(swapped.collect())
}

fn is_sysctl(name: &str) -> bool {
    let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.len() <= 253
        && name.split(['.', '/']).all(|part| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(|b| word(*b))
                && bytes.last().is_some_and(|b| word(*b))
                && bytes.iter().all(|b| word(*b) || matches!(b, b'-' | b'_'))
        })
}

fn seccomp(profile: &Cursor<'_>, errors: &mut Errors) {
    if !profile.is_present() {
        return;
    }
    let (kind, local) = (profile.field("type"), profile.field("localhostProfile"));
    match kind.str() {
        "" => errors.push(kind.required("type is required when seccompProfile is set")),
        text if !PROFILES.contains(&text) => errors.push(kind.not_supported(&PROFILES)),
        _ => {}
    }
    if kind.str() != "Localhost" {
        if local.is_present() {
            errors.push(local.invalid("can only be set when seccomp type is Localhost"));
        }
    } else if local.is_present() {
        paths::relative(&local, &local.path(), errors);
    } else {
        errors.push(local.required("must be set when seccomp type is Localhost"));
    }
}

fn apparmor(profile: &Cursor<'_>, errors: &mut Errors) {
    const NEEDED: &str = "must be set when AppArmor type is Localhost";
    if !profile.is_present() {
        return;
    }
    let (kind, local) = (profile.field("type"), profile.field("localhostProfile"));
    match kind.str() {
        "" => errors.push(kind.required("type is required when appArmorProfile is set")),
        "Localhost" if !local.is_present() => errors.push(local.required(NEEDED)),
        "Localhost" => {
            if local.str().trim() != local.str() {
                errors.push(local.invalid("must not be padded with whitespace"));
            } else if local.str().is_empty() {
                errors.push(local.required(NEEDED));
            }
            checks::max_bytes(&local, LOCAL_PROFILE_MAX, errors);
        }
        known if PROFILES.contains(&known) => {
            if local.is_present() {
                errors.push(local.invalid("can only be set when AppArmor type is Localhost"));
            }
        }
        _ => errors.push(kind.not_supported(&PROFILES)),
    }
}

/// Validates the security context of a container.
pub(super) fn container(container: &Cursor<'_>, spec: &Cursor<'_>, errors: &mut Errors) {
    let context = container.field("securityContext");
    if !context.is_present() {
        return;
    }
    let privileged = context.field("privileged");
    if privileged.bool() {
        errors.push(privileged.forbidden(PRIVILEGED));
    }
    id(&context.field("runAsUser"), errors);
    id(&context.field("runAsGroup"), errors);
    let proc_mount = context.field("procMount");
    checks::one_of(&proc_mount, &["Default", "Unmasked"], errors);
    let host_users = spec.field("hostUsers").opt_bool() != Some(false);
    if host_users && proc_mount.str() == "Unmasked" {
        errors.push(proc_mount.invalid("`hostUsers` must be false to use `Unmasked`"));
    }
    seccomp(&context.field("seccompProfile"), errors);
    if context.field("allowPrivilegeEscalation").opt_bool() == Some(false) {
        escalation(&context, errors);
    }
    windows::options(&context.field("windowsOptions"), errors);
    apparmor(&context.field("appArmorProfile"), errors);
}

fn escalation(context: &Cursor<'_>, errors: &mut Errors) {
    if context.field("privileged").bool() {
        errors
            .push(context.invalid("cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
    }
    let added = context.field("capabilities").field("add");
    for _ in added.items().filter(|capability| capability.str() == "CAP_SYS_ADMIN") {
        let text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.push(context.invalid(text));
    }
}

/// Validates a pod with its own user namespace (`hostUsers: false`): it may not use other namespaces of the host,
/// nor block devices.
pub(super) fn host_users(spec: &Cursor<'_>, errors: &mut Errors) {
    const TEXT: &str = "when `hostUsers` is false";
    if spec.field("hostUsers").opt_bool() != Some(false) {
        return;
    }
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.field(field).bool() {
            errors.push(Error::forbidden(&child_path(&spec.path(), &[shown]), TEXT));
        }
    }
    for container in all_containers(spec) {
        let devices = container.field("volumeDevices");
        if !devices.is_empty() {
            errors.push(devices.forbidden(TEXT));
        }
    }
}
