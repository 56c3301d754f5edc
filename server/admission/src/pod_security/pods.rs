//! Checks of pod fields, and of fields that can be set for the pod or for its containers.

use std::collections::BTreeSet;

use portico_machinery::Cursor;

use super::violation::{Pod, Violation, describe_containers, describe_names, quote_names};

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Allowed sysctls, in the order in which versions added them.
const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// Allowed SELinux types, in the order in which versions added them.
const SELINUX_TYPES: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// Pod and containers that set a forbidden value.
#[derive(Default)]
struct Setters<'a> {
    pod: bool,
    containers: Vec<&'a str>,
}

impl<'a> Setters<'a> {
    /// Finds the security contexts for which `is_forbidden` returns true.
    fn find(pod: &Pod<'a>, mut is_forbidden: impl FnMut(&Cursor<'a>) -> bool) -> Self {
        let mut setters =
            Self { pod: is_forbidden(&pod.spec.field("securityContext")), containers: Vec::new() };
        for container in
            pod.containers().filter(|container| is_forbidden(&container.field("securityContext")))
        {
            setters.containers.push(container.field("name").str());
        }
        setters
    }

    /// Returns `pod` and `container "a"`; empty if the value is not set.
    fn descriptions(&self) -> Vec<String> {
        let mut descriptions: Vec<String> = self.pod.then(|| "pod".to_owned()).into_iter().collect();
        if !self.containers.is_empty() {
            descriptions.push(describe_containers(&self.containers));
        }
        descriptions
    }

    /// Joins the descriptions; `None` if the value is not set.
    fn join_descriptions(&self) -> Option<String> {
        let descriptions = self.descriptions();
        (!descriptions.is_empty()).then(|| descriptions.join(" and "))
    }
}

pub(super) fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"];
    let shared: Vec<String> = shared
        .iter()
        .filter(|field| pod.spec.field(field).bool())
        .map(|field| format!("{field}=true"))
        .collect();
    (!shared.is_empty()).then(|| Violation::new("host namespaces", shared.join(", ")))
}

pub(super) fn app_armor(pod: &Pod<'_>) -> Option<Violation> {
    let mut kinds = BTreeSet::new();
    let setters = Setters::find(pod, |context| {
        let profile = context.field("appArmorProfile");
        let kind = profile.field("type").str();
        let is_forbidden = profile.is_present() && !matches!(kind, "RuntimeDefault" | "Localhost");
        if is_forbidden {
            kinds.insert(kind.to_owned());
        }
        is_forbidden
    });
    let allowed =
        |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let annotations: BTreeSet<String> = pod
        .metadata
        .field("annotations")
        .entries()
        .filter(|(key, value)| key.starts_with(APP_ARMOR) && !allowed(value.str()))
        .map(|(key, value)| format!("{key}={:?}", value.str()))
        .collect();
    let mut subjects = setters.descriptions();
    match annotations.len() {
        0 => {}
        1 => subjects.push("annotation".to_owned()),
        _ => subjects.push("annotations".to_owned()),
    }
    if subjects.is_empty() {
        return None;
    }
    let values: Vec<String> = kinds.into_iter().chain(annotations).collect();
    let reason = if values.len() == 1 { "forbidden AppArmor profile" } else { "forbidden AppArmor profiles" };
    let detail =
        format!("{} must not set AppArmor profile type to {}", subjects.join(" and "), quote_names(&values));
    Some(Violation::new(reason, detail))
}

pub(super) fn selinux(pod: &Pod<'_>) -> Option<Violation> {
    selinux_among(pod, &SELINUX_TYPES[..4])
}

pub(super) fn selinux_with_engine(pod: &Pod<'_>) -> Option<Violation> {
    selinux_among(pod, &SELINUX_TYPES)
}

fn selinux_among(pod: &Pod<'_>, allowed: &[&str]) -> Option<Violation> {
    let (mut types, mut user, mut role) = (BTreeSet::new(), false, false);
    let setters = Setters::find(pod, |context| {
        let options = context.field("seLinuxOptions");
        let kind = options.field("type").str();
        let bad_type = !allowed.contains(&kind);
        if bad_type {
            types.insert(kind.to_owned());
        }
        let [sets_user, sets_role] = ["user", "role"].map(|field| !options.field(field).str().is_empty());
        user |= sets_user;
        role |= sets_role;
        bad_type || sets_user || sets_role
    });
    let subject = setters.join_descriptions()?;
    let types: Vec<String> = types.into_iter().collect();
    let mut options = Vec::new();
    if !types.is_empty() {
        options.push(describe_names("type", "types", &types));
    }
    if user {
        options.push("user may not be set".to_owned());
    }
    if role {
        options.push("role may not be set".to_owned());
    }
    let detail = format!("{subject} set forbidden securityContext.seLinuxOptions: {}", options.join("; "));
    Some(Violation::new("seLinuxOptions", detail))
}

pub(super) fn seccomp_annotations(pod: &Pod<'_>) -> Option<Violation> {
    let annotations = pod.metadata.field("annotations");
    let keys = pod.containers().map(|c| format!("{SECCOMP_CONTAINER}{}", c.field("name").str()));
    let allowed = |v: &str| matches!(v, "runtime/default" | "docker/default") || v.starts_with("localhost/");
    let forbidden: BTreeSet<String> = keys
        .chain([SECCOMP_POD.to_owned()])
        .filter_map(|key| {
            let value = annotations.entry_str(&key).filter(|value| !allowed(value))?;
            Some(format!("{key}={value:?}"))
        })
        .collect();
    let noun = if forbidden.len() == 1 { "annotation" } else { "annotations" };
    (!forbidden.is_empty()).then(|| {
        let forbidden: Vec<String> = forbidden.into_iter().collect();
        Violation::new("seccompProfile", format!("forbidden {noun} {}", forbidden.join(", ")))
    })
}

/// Returns true if a context sets an allowed seccomp profile, and `None` if it sets no profile.
fn seccomp_profile(context: &Cursor<'_>) -> Option<bool> {
    let profile = context.field("seccompProfile");
    profile.is_present().then(|| matches!(profile.field("type").str(), "RuntimeDefault" | "Localhost"))
}

pub(super) fn seccomp(pod: &Pod<'_>) -> Option<Violation> {
    let mut kinds = BTreeSet::new();
    let setters = Setters::find(pod, |context| {
        let is_forbidden = seccomp_profile(context) == Some(false);
        if is_forbidden {
            kinds.insert(context.field("seccompProfile").field("type").str().to_owned());
        }
        is_forbidden
    });
    let subject = setters.join_descriptions()?;
    let kinds: Vec<String> = kinds.into_iter().collect();
    let detail =
        format!("{subject} must not set securityContext.seccompProfile.type to {}", quote_names(&kinds));
    Some(Violation::new("seccompProfile", detail))
}

pub(super) fn seccomp_required(pod: &Pod<'_>) -> Option<Violation> {
    if let Some(violation) = seccomp(pod) {
        return Some(violation);
    }
    let silent =
        describe_unset(pod, seccomp_profile(&pod.spec.field("securityContext")).is_some(), |context| {
            seccomp_profile(context).is_none()
        })?;
    let detail = format!(
        "pod or {silent} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""
    );
    Some(Violation::new("seccompProfile", detail))
}

pub(super) fn seccomp_required_unless_windows(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows() { None } else { seccomp_required(pod) }
}

/// Describes the containers that do not set a value, if the pod does not set it either. `None` if there are none.
fn describe_unset<'a>(
    pod: &Pod<'a>,
    pod_sets: bool,
    is_silent: impl Fn(&Cursor<'a>) -> bool,
) -> Option<String> {
    let silent = pod.containers().filter(|c| !pod_sets && is_silent(&c.field("securityContext")));
    let names: Vec<&str> = silent.map(|container| container.field("name").str()).collect();
    (!names.is_empty()).then(|| describe_containers(&names))
}

pub(super) fn non_root(pod: &Pod<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    let non_root_of = |context: &Cursor<'_>| context.field("runAsNonRoot").opt_bool();
    if let Some(subject) =
        Setters::find(pod, |context| non_root_of(context) == Some(false)).join_descriptions()
    {
        let detail = format!("{subject} must not set securityContext.runAsNonRoot=false");
        return Some(Violation::new(REASON, detail));
    }
    let pod_sets = non_root_of(&pod.spec.field("securityContext")) == Some(true);
    let silent = describe_unset(pod, pod_sets, |context| non_root_of(context).is_none())?;
    Some(Violation::new(REASON, format!("pod or {silent} must set securityContext.runAsNonRoot=true")))
}

pub(super) fn non_root_unless_user_namespace(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_user_namespace() { None } else { non_root(pod) }
}

pub(super) fn root_user(pod: &Pod<'_>) -> Option<Violation> {
    let subject =
        Setters::find(pod, |context| context.field("runAsUser").i64() == Some(0)).join_descriptions()?;
    Some(Violation::new("runAsUser=0", format!("{subject} must not set runAsUser=0")))
}

pub(super) fn root_user_unless_user_namespace(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_user_namespace() { None } else { root_user(pod) }
}

/// Checks sysctls against the first `N` entries of the table.
pub(super) fn sysctls<const N: usize>(pod: &Pod<'_>) -> Option<Violation> {
    let set = pod.spec.field("securityContext").field("sysctls");
    let names = set.items().map(|sysctl| sysctl.field("name").str());
    let forbidden: Vec<&str> = names.filter(|name| !SYSCTLS[..N].contains(name)).collect();
    (!forbidden.is_empty()).then(|| Violation::new("forbidden sysctls", forbidden.join(", ")))
}

pub(super) fn host_process(pod: &Pod<'_>) -> Option<Violation> {
    let subject = Setters::find(pod, |context| context.field("windowsOptions").field("hostProcess").bool())
        .join_descriptions()?;
    let detail = format!("{subject} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Violation::new("hostProcess", detail))
}
