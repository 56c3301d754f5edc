//! Security contexts of pods and containers.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use super::parts::{all_containers, below};
use super::privileges::PRIVILEGED;
use crate::Errors;
use crate::{checks, paths};

const ID_RANGE: &str = "must be between 0 and 2147483647, inclusive";
const SYSCTL: &str = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

fn id(at: &Cursor<'_>, errors: &mut Errors) {
    checks::between(at, 0, i64::from(i32::MAX), ID_RANGE, errors);
}

/// The context of the whole pod.
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
    profile(&context.field("seccompProfile"), "seccompProfile", "seccomp", errors);
    windows_options(&context.field("windowsOptions"), errors);
    profile(&context.field("appArmorProfile"), "appArmorProfile", "AppArmor", errors);
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
        } else if !seen.insert(name.str().replace('/', ".")) {
            errors.push(name.duplicate());
        }
        let dotted = name.str().replace('/', ".");
        let ipc = ["kernel.shm", "kernel.msg"].iter().any(|p| dotted.starts_with(p))
            || dotted == "kernel.sem"
            || dotted.starts_with("fs.mqueue.");
        for (of_it, field) in [(dotted.starts_with("net."), "hostNetwork"), (ipc, "hostIPC")] {
            if of_it && spec.field(field).bool() {
                errors.push(name.invalid(&format!("may not be specified when '{field}' is true")));
            }
        }
    }
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

/// A seccomp or AppArmor profile.
fn profile(profile: &Cursor<'_>, field: &str, name: &str, errors: &mut Errors) {
    if !profile.is_present() {
        return;
    }
    let (kind, local) = (profile.field("type"), profile.field("localhostProfile"));
    match kind.str() {
        "" => errors.push(kind.required(&format!("type is required when {field} is set"))),
        text if !PROFILES.contains(&text) => errors.push(kind.not_supported(&PROFILES)),
        _ => {}
    }
    if kind.str() != "Localhost" {
        if local.is_present() {
            let text = format!("can only be set when {name} type is Localhost");
            errors.push(local.invalid(&text));
        }
        return;
    }
    if !local.is_present() || (field == "appArmorProfile" && local.str().trim().is_empty()) {
        errors.push(local.required(&format!("must be set when {name} type is Localhost")));
    } else if field == "appArmorProfile" {
        if local.str().trim() != local.str() {
            errors.push(local.invalid("must not be padded with whitespace"));
        }
        if local.str().len() > 4095 {
            errors.push(Error::too_long(&local.path(), 4095));
        }
    } else {
        paths::local(&local, &local.path(), errors);
    }
}

/// The context of one container.
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
    profile(&context.field("seccompProfile"), "seccompProfile", "seccomp", errors);
    if context.field("allowPrivilegeEscalation").opt_bool() == Some(false) {
        escalation(&context, errors);
    }
    windows_options(&context.field("windowsOptions"), errors);
    profile(&context.field("appArmorProfile"), "appArmorProfile", "AppArmor", errors);
}

fn escalation(context: &Cursor<'_>, errors: &mut Errors) {
    if context.field("privileged").bool() {
        errors
            .push(context.invalid("cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
    }
    let added = context.field("capabilities").field("add");
    if added.items().any(|capability| capability.str() == "CAP_SYS_ADMIN") {
        let text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.push(context.invalid(text));
    }
}

/// Options of Windows pods and containers.
fn windows_options(options: &Cursor<'_>, errors: &mut Errors) {
    let name = options.field("gmsaCredentialSpecName");
    if name.is_present() {
        checks::follows(&name, names::dns1123_subdomain, errors);
    }
    let spec = options.field("gmsaCredentialSpec");
    if let Some(text) = spec.opt_str() {
        if text.is_empty() {
            errors.push(spec.invalid("gmsaCredentialSpec cannot be an empty string"));
        } else if text.len() > 65_536 {
            errors.push(spec.invalid("gmsaCredentialSpec size must be under 64 KiB"));
        }
    }
    let user = options.field("runAsUserName");
    if let Some(text) = user.opt_str() {
        windows_user(&user, text, errors);
    }
}

fn windows_user(at: &Cursor<'_>, text: &str, errors: &mut Errors) {
    if text.is_empty() {
        errors.push(at.invalid("runAsUserName cannot be an empty string"));
        return;
    }
    if text.chars().any(char::is_control) {
        errors.push(at.invalid("runAsUserName cannot contain control characters"));
        return;
    }
    let parts: Vec<&str> = text.split('\\').collect();
    let user = match parts.as_slice() {
        [user] => user,
        [domain, user] => {
            if domain.is_empty() {
                errors
                    .push(at.invalid("runAsUserName's Domain doesn't match the NetBIOS nor the DNS format"));
            } else if domain.len() >= 256 {
                errors.push(at.invalid("runAsUserName's Domain length must be under 256 characters"));
            }
            user
        }
        _ => {
            errors.push(at.invalid("runAsUserName cannot contain more than one backslash"));
            return;
        }
    };
    if user.is_empty() {
        errors.push(at.invalid("runAsUserName's User cannot be empty"));
    } else if user.len() > 104 {
        errors.push(at.invalid("runAsUserName's User length must not be longer than 104 characters"));
    } else if user.chars().all(|c| c == '.' || c == ' ') {
        errors.push(at.invalid("runAsUserName's User cannot contain only periods or spaces"));
    } else if let Some(sign) = user.chars().find(|c| "\"/\\[]:;|=,+*?<>@".contains(*c)) {
        errors.push(
            at.invalid(&format!("runAsUserName's User cannot contain the following character: {sign}")),
        );
    }
}

/// What a user namespace of its own forbids.
pub(super) fn host_users(spec: &Cursor<'_>, errors: &mut Errors) {
    const TEXT: &str = "when `hostUsers` is false";
    if spec.field("hostUsers").opt_bool() != Some(false) {
        return;
    }
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.field(field).bool() {
            errors.push(Error::forbidden(&below(&spec.path(), &[shown]), TEXT));
        }
    }
    for container in all_containers(spec) {
        let devices = container.field("volumeDevices");
        if !devices.is_empty() {
            errors.push(devices.forbidden(TEXT));
        }
    }
}
